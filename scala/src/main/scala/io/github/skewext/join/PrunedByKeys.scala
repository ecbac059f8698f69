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
}
