package io.github.skewext.technique

import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.FILTER

/**
 * Pushes predicates on one side of a salted join below its salts, towards the scan. All copies of a
 * row are equal to it, also those that are markers.
 */
object PushThroughSaltKeys extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformDownWithPruning(_.containsPattern(FILTER)) {
      case Filter(condition, salts: SaltKeys)
          if condition.deterministic && condition.references.subsetOf(salts.child.outputSet) =>
        salts.copy(child = Filter(condition, salts.child))
    }
}
