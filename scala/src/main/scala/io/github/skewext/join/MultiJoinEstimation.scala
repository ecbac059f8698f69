package io.github.skewext.join

import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}

/**
 * Estimates the size of a [[MultiFullJoin]].
 *
 * The size is the sum of the inputs if at most one of them may have duplicate keys. Inputs with
 * duplicate keys are multiplied, as in Spark's estimate for two inputs. A smaller estimate could
 * make a join above broadcast a large result.
 */
private[skewext] object MultiJoinEstimation {

  def apply(join: MultiFullJoin): Statistics = {
    val shown = join.children.indices.filter(join.roles(_).isShown)
    val (once, repeated) = shown.partition(join.hasDistinctKeys)
    // As in Spark's estimates, an input that turned out to be empty does not make the result small.
    def sizes(of: Seq[Int]) = of.map(join.children(_).stats.sizeInBytes).filter(_ > 0)
    val size = (sizes(once).sum + (if (repeated.isEmpty) 0 else sizes(repeated).product)).max(1)
    Statistics(sizeInBytes = size)
  }
}

/** The number of rows of a plan: that of its statistics, or its size by the width of a row. */
private[skewext] object EstimatedRows {

  def of(plan: LogicalPlan): BigInt = plan.stats.rowCount.getOrElse(
    plan.stats.sizeInBytes / EstimationUtils.getSizePerRow(plan.output).max(1))
}
