package io.github.skewext.join

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** A join whose inputs [[RuntimeFilters]] prunes. */
private[skewext] trait PrunedByKeys extends LogicalPlan {

  /** The compared expressions of each input. */
  def keys: Seq[Seq[Expression]]

  /** The positions of key columns whose equal values are identical. */
  def exactKeys: Seq[Int]

  /** Whether the result has no key that this input lacks. */
  def isNeeded(input: Int): Boolean

  /**
   * Conditions on an input besides those on its keys, which follow from the rows of a creator.
   *
   * @param computed gives the value of an aggregate over all rows of the creator.
   */
  def bounds(input: Int, creator: Int, computed: Expression => Expression): Seq[Expression]
}
