package io.github.skewext.optimizer

import io.github.skewext.internal.SkewConf
import io.github.skewext.plan.InputRole.Required
import io.github.skewext.plan.MultiFullJoin

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.execution.adaptive.{AQEPropagateEmptyRelation, LogicalQueryStage, QueryStageExec}

/**
 * Inputs without rows: a required one leaves nothing of the join, others are left out and their
 * columns are null. As Spark's `PropagateEmptyRelation` does for its own joins.
 */
object PropagateEmptyInputs extends Rule[LogicalPlan] {

  // Spark has not yet pulled empty relations up when this runs, but its nodes know their rows.
  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case join: MultiFullJoin =>
      val isEmpty = join.children.map(_.maxRows.contains(0L))
      if (comesOutEmpty(join, isEmpty)) {
        join.empty
      } else if (isEmpty.contains(true) && join.indicator.isEmpty) {
        join.without(isEmpty.indices.filter(isEmpty).toSet)
      } else {
        join
      }
    }

  private def comesOutEmpty(join: MultiFullJoin, isEmpty: Seq[Boolean]): Boolean = {
    val shown = join.roles.indices.filter(join.roles(_).isShown)
    shown.forall(isEmpty) || shown.exists(i => join.roles(i) == Required && isEmpty(i))
  }

  /**
   * The same while the query runs, when shuffles tell that they have no rows: the other inputs are
   * not read then. What would only leave inputs out is left alone, since their exchanges have been
   * planned, with the others, for the join as it is.
   */
  object AtRuntime extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = if (SkewConf.enabled(conf)) {
      val emptied = plan.transformUpWithPruning(_.containsPattern(JOIN)) {
        case join: MultiFullJoin if comesOutEmpty(join, join.children.map(wroteNothing)) =>
          join.empty
      }
      // Spark's rule has had its turn. A shuffle of no rows would make the new plan dearer than the
      // one that has read the inputs.
      if (emptied eq plan) plan else AQEPropagateEmptyRelation(emptied)
    } else {
      plan
    }

    private def wroteNothing(plan: LogicalPlan): Boolean = plan match {
      case LogicalQueryStage(_, stage: QueryStageExec) =>
        stage.isMaterialized && stage.getRuntimeStatistics.rowCount.contains(BigInt(0))
      case other => other.maxRows.contains(0L) && !other.exists(_.isInstanceOf[LogicalQueryStage])
    }
  }
}
