package io.github.skewext.explain

import io.github.skewext.join.probe.BuildProbeJoinExec
import io.github.skewext.join.range.{BroadcastRangeJoinExec, BroadcastRowsExec, PlanRangeJoins, RangeProductExec, RangeReason}

import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, BroadcastNestedLoopJoinExec, CartesianProductExec}
import org.apache.spark.sql.execution.{InputAdapter, SparkPlan}

/** Range joins: how skewext runs them, or why Spark does. */
private[explain] object ExplainedRanges {

  /** How a join by a range is run. */
  def of(plan: SparkPlan): Option[String] = plan match {
    case join: BroadcastRangeJoinExec =>
      val side = if (join.buildSide == BuildLeft) "left" else "right"
      val ofKeys = if (join.leftKeys.isEmpty) "" else " for each key"
      val text =
        s"range join (${join.range.form}): the $side side is broadcast with a sorted index " +
          s"of its ranges$ofKeys, and the other side is neither shuffled nor sorted"
      Some(text + tests(join))
    case product: RangeProductExec =>
      val text =
        s"range join (${product.range.form}): for each pair of partitions, a task makes a " +
          "sorted index of the ranges of the right side"
      Some(text + tests(product))
    case _ => None
  }

  private def tests(join: SparkPlan): String = {
    val Seq(tests, rows, output) =
      Seq("numTests", "numStreamedRows", "numOutputRows").map(join.metrics(_).value)
    if (rows == 0) ""
    else s"; $tests pairs tested for $rows rows, which returned $output rows"
  }

  /** The range beside the equal keys of a join. */
  def ofKeys(join: BuildProbeJoinExec): String = join.range.fold("") { range =>
    val indexed = join.metrics("numIndexed").value
    val keys = if (indexed == 0) "" else s" ($indexed in this query)"
    s"; keys with many rows are searched by range, ${range.form}$keys"
  }

  /** Why a join without a shuffle is Spark's. */
  def whyNot(operator: PlannedJoin.Operator): Option[RangeReason] = operator match {
    case PlannedJoin.Operator(loop: BroadcastNestedLoopJoinExec, _) if readsFewRows(loop) =>
      Some(RangeReason.FewRows)
    case AllPairs(join) => PlanRangeJoins.whyNot(join)
    case PlannedJoin.Operator(_: BroadcastHashJoinExec, Some(join: Join)) =>
      PlanRangeJoins.whyNotBesideKeys(join)
    case _ => None
  }

  private def readsFewRows(loop: BroadcastNestedLoopJoinExec): Boolean = loop.children.exists {
    case InputAdapter(_: BroadcastRowsExec) | _: BroadcastRowsExec => true
    case _ => false
  }

  /** A join for which Spark compares all pairs of rows. */
  object AllPairs {
    def unapply(operator: PlannedJoin.Operator): Option[Join] = operator match {
      case PlannedJoin.Operator(
            _: BroadcastNestedLoopJoinExec | _: CartesianProductExec,
            Some(join: Join)) =>
        Some(join)
      case _ => None
    }
  }
}
