package io.github.skewext.join.optimizer

import io.github.skewext.join.InputRole.{Optional, Required}
import io.github.skewext.join.MultiFullJoin

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.optimizer.EliminateDistinct
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Removes optional inputs whose columns are unused, if a required input determines the keys of the
 * result. Such an input can only repeat rows. So it must have no duplicate keys, or the node above
 * must ignore duplicates (DISTINCT, min and max). Spark's `EliminateOuterJoin` does the same for
 * its own joins:
 * {{{
 * SELECT DISTINCT k, va FROM a LEFT JOIN b USING (k)   =>   SELECT DISTINCT k, va FROM a
 * }}}
 */
object DropUnusedInputs extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    MultiFullJoin.markWithHiddenIds(plan)
    plan.transformWithPruning(_.containsPattern(JOIN)) {
      case a: Aggregate if ignoresDuplicates(a) =>
        dropped(a.child, a.references, countsRows = false).map(c => a.copy(child = c)).getOrElse(a)
      case p @ Project(_, _) =>
        dropped(p, AttributeSet.empty, countsRows = true).getOrElse(p)
      // Without a projection, all columns of the join are used.
      case join: MultiFullJoin =>
        dropped(join, join.outputSet, countsRows = true).getOrElse(join)
    }
  }

  private def ignoresDuplicates(a: Aggregate): Boolean =
    a.aggregateExpressions.flatMap(_.collect { case e: AggregateExpression => e }).forall { e =>
      e.isDistinct || EliminateDistinct.isDuplicateAgnostic(e.aggregateFunction)
    }

  /** The plan with fewer inputs of its join, if there are unused ones. */
  private def dropped(
      plan: LogicalPlan,
      used: AttributeSet,
      countsRows: Boolean): Option[LogicalPlan] = plan match {
    case p @ Project(list, child) if list.forall(_.deterministic) =>
      dropped(child, p.references, countsRows).map(c => p.copy(child = c))
    case f @ Filter(condition, child) if condition.deterministic =>
      dropped(child, used ++ condition.references, countsRows).map(c => f.copy(child = c))
    case join: MultiFullJoin
        if join.roles.contains(Required) && join.hasExactKeys &&
          !join.indicator.exists(used.contains) =>
      val unused = join.children.indices.filter { i =>
        join.roles(i) == Optional && !join.valueColumns(i).exists(used.contains) &&
        (!countsRows || join.hasDistinctKeys(i))
      }
      val kept = join.children.indices.diff(unused)
      if (unused.isEmpty || !join.mayBecome(kept)) None else Some(join.without(unused.toSet))
    case _ => None
  }
}
