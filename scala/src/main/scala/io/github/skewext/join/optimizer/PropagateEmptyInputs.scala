package io.github.skewext.join.optimizer

import io.github.skewext.join.InputRole.Required
import io.github.skewext.join.MultiFullJoin

import org.apache.spark.sql.catalyst.plans.logical.{CollectMetrics, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.execution.adaptive.{AQEPropagateEmptyRelation, LogicalQueryStage, QueryStageExec}

/**
 * Simplifies joins with empty inputs, as Spark's `PropagateEmptyRelation` does for its own joins.
 * If a required input is empty, so is the join. Other empty inputs are removed, and their columns
 * are null.
 */
object PropagateEmptyInputs extends Rule[LogicalPlan] {

  // When this rule runs, Spark has not yet propagated empty relations, but its nodes report their
  // maximum number of rows.
  override def apply(plan: LogicalPlan): LogicalPlan = {
    MultiFullJoin.markWithHiddenIds(plan)
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case join: MultiFullJoin =>
      val isEmpty = join.children.map(hasNoRows)
      val (empty, others) = isEmpty.indices.partition(isEmpty)
      if (comesOutEmpty(join, isEmpty)) join.empty
      else if (empty.nonEmpty && join.indicator.isEmpty && join.mayBecome(others)) {
        join.without(empty.toSet)
      } else join
    }
  }

  /** An empty input that the query observes stays, as in Spark. */
  private def hasNoRows(input: LogicalPlan): Boolean =
    input.maxRows.contains(0L) && !input.exists(_.isInstanceOf[CollectMetrics])

  private def comesOutEmpty(join: MultiFullJoin, isEmpty: Seq[Boolean]): Boolean = {
    val shown = join.roles.indices.filter(join.roles(_).isShown)
    shown.forall(isEmpty) || shown.exists(i => join.roles(i) == Required && isEmpty(i))
  }

  /**
   * The same at run time, when a shuffle without rows is complete: then the other inputs need not
   * be read. The rule only replaces joins that are empty. It does not remove inputs, because
   * exchanges have been planned for the join with all its inputs.
   */
  object AtRuntime extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      val emptied = plan.transformUpWithPruning(_.containsPattern(JOIN)) {
        case join: MultiFullJoin if comesOutEmpty(join, join.children.map(wroteNothing)) =>
          join.empty
      }
      // Spark's rule has already run. Without a second run, a remaining shuffle of no rows would
      // make the new plan more expensive than the one that reads the inputs.
      if (emptied eq plan) plan else AQEPropagateEmptyRelation(emptied)
    }

    private def wroteNothing(plan: LogicalPlan): Boolean = plan match {
      case LogicalQueryStage(_, stage: QueryStageExec) =>
        stage.isMaterialized && stage.getRuntimeStatistics.rowCount.contains(BigInt(0))
      case other => hasNoRows(other) && !other.exists(_.isInstanceOf[LogicalQueryStage])
    }
  }
}
