package io.github.skewext.optimizer

import io.github.skewext.plan.InputRole.Required
import io.github.skewext.plan.{AskedOfEach, MultiFullJoin}

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * What is known of the keys of a required input is asked of the others' too, as Spark does for inner
 * and left joins: a key that it lacks does not come out, and rows with a null key of other inputs do
 * not either. In `multi_join(a.where("k > 5"), b, how="left")` b is read from `k > 5` on.
 */
object InferKeyPredicates extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = if (conf.constraintPropagationEnabled) {
    plan.transformUpWithPruning(_.containsPattern(JOIN)) {
      case join: MultiFullJoin if join.roles.contains(Required) =>
        // Constraints of the join speak of its output; of keys, those of required inputs.
        val known = join.constraints.toSeq.filter { c =>
          c.references.subsetOf(join.exactKeyOutput) && !SubqueryExpression.hasSubquery(c) &&
          AskedOfEach(c)
        }
        join.withFilters(_ => known)
    }
  } else {
    plan
  }
}
