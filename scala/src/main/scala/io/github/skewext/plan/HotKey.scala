package io.github.skewext.plan

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}

/**
 * A key with many rows.
 *
 * @param values a literal for every key column
 * @param leftShare the rows of this key on the left, as a share of the rows of both sides together;
 *                  None where the caller has given the key and nobody has counted
 * @param rightShare the same of the rows on the right
 */
case class HotKey(
    values: Seq[Expression],
    leftShare: Option[Double] = None,
    rightShare: Option[Double] = None) {

  /** The rows of this key on both sides, as a share of all, if they were counted. */
  def share: Option[Double] = for (left <- leftShare; right <- rightShare) yield left + right

  def shareOf(side: BuildSide): Option[Double] = if (side == BuildLeft) leftShare else rightShare

  override def toString: String = values.mkString("(", ", ", ")")
}
