package io.github.skewext.multijoin

import org.apache.spark.sql.catalyst.expressions.{And, Expression, IsNotNull}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Filters rows whose key has a null before they are shuffled, where the roles say that they cannot
 * come out: in an inner join from every input, in a left join from all but the first.
 */
object FilterNullKeys extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case join: MultiFullJoin =>
      val children = join.children.indices.map { i =>
        val child = join.children(i)
        // Spark drops a filter that the constraints of its child imply; asking the constraints here
        // keeps the rule from adding it again on every run.
        lazy val missing = join
          .keys(i)
          .filter(_.nullable)
          .map(k => IsNotNull(k): Expression)
          .filterNot(child.constraints.contains)
        if (InputRole.emitsNullKeys(join.roles, i) || missing.isEmpty) child
        else Filter(missing.reduce(And), child)
      }
      join.withInputs(children)
    }
}
