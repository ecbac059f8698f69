package io.github.skewext.join.optimizer

import io.github.skewext.join.InputRole.Required
import io.github.skewext.join.{MultiFullJoin, PresenceFolding}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Simplifies expressions above the join with facts about columns of required inputs: the value of a
 * constant column, as Spark's `FoldablePropagation` does for the preserved sides of a join, and
 * that a column is not null. For example, `if(present, k, NULL)`, the key of one table of a chain,
 * becomes `k` if each row has that table.
 *
 * Optional inputs are not used: a column that is constant there is null above, if the input lacks
 * the key.
 */
object FoldPresentColumns extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsPattern(JOIN)) {
      case project @ Project(list, Below(join)) =>
        val folded = new Folding(join)
        val newList = list.map {
          case a: Attribute =>
            folded(a) match {
              case same: Attribute => same
              case value => MultiFullJoin.aliasFor(value, a)
            }
          case alias: Alias =>
            alias.withNewChildren(Seq(folded(alias.child))).asInstanceOf[Alias]
          case other => other
        }
        if (newList == list) project else project.copy(projectList = newList)
      case filter @ Filter(condition, join: MultiFullJoin) =>
        val newCondition = new Folding(join)(condition)
        if (newCondition == condition) filter else filter.copy(condition = newCondition)
    }

  private object Below {
    def unapply(plan: LogicalPlan): Option[MultiFullJoin] = plan match {
      case join: MultiFullJoin => Some(join)
      case Filter(_, join: MultiFullJoin) => Some(join)
      case _ => None
    }
  }

  /** Simplifies expressions above a join. Its facts are found once, as inputs may be wide and many. */
  private final class Folding(join: MultiFullJoin) {
    private val present =
      join.roles.indices.filter(join.roles(_) == Required).map(new PresenceFolding.Present(join, _))
    private val inputOf = AttributeMap(present.flatMap(p => p.valueColumns.map(_ -> p)))

    def apply(e: Expression): Expression =
      e.references.flatMap(inputOf.get).toSeq.distinct.sortBy(_.input).foldLeft(e) { (known, of) =>
        if (known.references.exists(inputOf.get(_).contains(of))) of.folded(known) else known
      }
  }
}
