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

object HotKey {

  /**
   * The keys with more than a share of all rows on one of the sides.
   *
   * @param rows the number of rows of both sides.
   * @param keys each key with its number of rows on the left and on the right.
   */
  def above(share: Double, rows: Double, keys: Seq[(Seq[Expression], Seq[Double])]): Seq[HotKey] =
    for {
      (key, counts) <- keys
      Seq(left, right) = counts.map(_ / math.max(1.0, rows)) if math.max(left, right) > share
    } yield HotKey(key, Some(left), Some(right))
}
