package io.github.skewext.multijoin

import io.github.skewext.multijoin.InputRole.Required

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * What is known of the keys of a required input is asked of the others' too, as Spark does for inner
 * and left joins: a key that it lacks does not come out, and rows with a null key of other inputs do
 * not either. In `multi_join(a.where("k > 5"), b, how="left")` b is read from `k > 5` on.
 */
object InferKeyPredicates extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = if (conf.constraintPropagationEnabled) {
    plan.transformUpWithPruning(_.containsPattern(JOIN)) {
      case join: MultiFullJoin if join.roles.contains(Required) =>
        // Constraints of the join speak of its output; of keys, those of required inputs.
        val known = join.constraints.toSeq.filter { c =>
          c.references.subsetOf(join.exactKeyOutput) && !SubqueryExpression.hasSubquery(c)
        }
        if (known.isEmpty) {
          join
        } else {
          val children = join.children.indices.map { i =>
            val child = join.children(i)
            val missing = known.map(join.overInput(i, _)).filterNot(child.constraints.contains)
            missing.reduceOption(And).map(Filter(_, child)).getOrElse(child)
          }
          join.withInputs(children)
        }
    }
  } else {
    plan
  }
}
