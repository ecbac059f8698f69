package io.github.skewext.optimizer

import io.github.skewext.plan.{InputRole, MultiFullJoin}

import org.apache.spark.sql.catalyst.expressions.IsNotNull
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Filters rows whose key has a null before they are shuffled, where the roles say that they cannot
 * come out: in an inner join from every input, in a left join from all but the first.
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
