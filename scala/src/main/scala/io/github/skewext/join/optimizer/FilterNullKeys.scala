package io.github.skewext.join.optimizer

import io.github.skewext.join.{InputRole, MultiFullJoin}

import org.apache.spark.sql.catalyst.expressions.IsNotNull
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Filters rows with a null key before the shuffle, if the roles imply that the join does not return
 * them: in every input of an inner join, and in all but the first of a left join.
 */
object FilterNullKeys extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case join: MultiFullJoin =>
      join.withFilters { i =>
        if (InputRole.emitsNullKeys(join.roles, i)) Nil
        else
          join.keyOutput.indices
            .filter(join.keys(i)(_).nullable)
            .map(j => IsNotNull(join.keyOutput(j)))
      }
    }
}
