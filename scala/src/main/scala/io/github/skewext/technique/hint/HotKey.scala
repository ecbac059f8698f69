package io.github.skewext.technique.hint

import org.apache.spark.sql.catalyst.expressions.Expression

/**
 * A key with many rows.
 *
 * @param values a literal for every key column.
 * @param leftShare rows with this key on the left, as a fraction of the rows of both sides; None if
 *                  the caller named the key, so that its rows were not counted.
 * @param rightShare the same for the right side.
 */
case class HotKey(
    values: Seq[Expression],
    leftShare: Option[Double] = None,
    rightShare: Option[Double] = None) {

  /** Rows with this key on both sides, as a fraction of all rows; None if not counted. */
  def share: Option[Double] = for (left <- leftShare; right <- rightShare) yield left + right

  override def toString: String = values.mkString("(", ", ", ")")
}
