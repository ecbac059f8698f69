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
        val newList = list.map {
          case a: Attribute =>
            folded(a, join) match {
              case same: Attribute => same
              case value => MultiFullJoin.aliasFor(value, a)
            }
          case alias: Alias =>
            alias.withNewChildren(Seq(folded(alias.child, join))).asInstanceOf[Alias]
          case other => other
        }
        if (newList == list) project else project.copy(projectList = newList)
      case filter @ Filter(condition, join: MultiFullJoin) =>
        val newCondition = folded(condition, join)
        if (newCondition == condition) filter else filter.copy(condition = newCondition)
    }

  private object Below {
    def unapply(plan: LogicalPlan): Option[MultiFullJoin] = plan match {
      case join: MultiFullJoin => Some(join)
      case Filter(_, join: MultiFullJoin) => Some(join)
      case _ => None
    }
  }

  private def folded(e: Expression, join: MultiFullJoin): Expression =
    join.roles.indices.filter(join.roles(_) == Required).foldLeft(e) { (known, i) =>
      if (join.valueColumns(i).exists(known.references.contains)) {
        PresenceFolding.whenPresent(known, join, i)
      } else {
        known
      }
    }
}
