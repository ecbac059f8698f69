package io.github.skewext.skew.split

import io.github.skewext.skew.run.SplitOperator

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{Cost, CostEvaluator}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.internal.SQLConf

/**
 * A cost evaluator for `spark.sql.adaptive.customCostEvaluatorClass`, needed for forced splits of
 * skewed joins. If splits are forced, a plan with more split joins, Spark's or ours, is cheaper than
 * any plan with fewer. Among plans with equally many, the one with fewer shuffles is cheaper. Spark's
 * own evaluator counts only Spark's joins.
 */
class SkewJoinCostEvaluator extends CostEvaluator {
  override def evaluateCost(plan: SparkPlan): Cost = SkewJoinCost(
    splitJoins =
      if (SQLConf.get.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN)) splitJoins(plan) else 0,
    shuffles = plan.collect { case shuffle: ShuffleExchangeLike => shuffle }.size)

  private def splitJoins(plan: SparkPlan): Int = plan.collect {
    case join @ SplitOperator(_) => join
    // From Spark 4.2 on, also a broadcast join, which has no trait in common with the others.
    case join: BaseJoinExec if join.nodeName.endsWith("(skew=true)") => join
  }.size
}

private[skewext] case class SkewJoinCost(splitJoins: Int, shuffles: Int) extends Cost {
  override def compare(that: Cost): Int = that match {
    case SkewJoinCost(joins, others) if joins == splitJoins => shuffles.compareTo(others)
    case SkewJoinCost(joins, _) => joins.compareTo(splitJoins)
    case other =>
      throw new IllegalArgumentException(s"Cannot compare the cost of a plan with $other.")
  }
}
