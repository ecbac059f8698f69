package io.github.skewext.join.optimizer

import io.github.skewext.facts.SafeToDuplicate
import io.github.skewext.join.InputRole.Required
import io.github.skewext.join.{InputRole, MultiFullJoin}

import org.apache.spark.sql.catalyst.expressions.{IsNotNull, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Adds predicates on the keys of a required input to the other inputs, as Spark does for inner and
 * left joins. The join does not return keys that the required input lacks, nor rows with a null key
 * of other inputs. In `multi_join(a.where("k > 5"), b, how="left")`, b is also filtered by `k > 5`.
 */
object InferKeyPredicates extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = if (conf.constraintPropagationEnabled) {
    plan.transformUpWithPruning(_.containsPattern(JOIN)) {
      case join: MultiFullJoin if join.roles.contains(Required) =>
        // The constraints of the join are over its output. Those on keys are from required inputs.
        val known = join.constraints.toSeq.filter { c =>
          c.references.subsetOf(join.exactKeyOutput) && !SubqueryExpression.hasSubquery(c) &&
          SafeToDuplicate(c)
        }
        join.withFilters(_ => known)
    }
  } else {
    plan
  }
}

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
