package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions.{Attribute, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreePattern.OUTER_REFERENCE

/**
 * The plan of a subquery, hidden from Spark while it renews the column ids in a copy of the plan
 * around it. If the optimizer has moved the predicates out of a correlated subquery, Spark renews
 * the ids of the subquery's columns, but not those in the predicates. New ids are not needed here,
 * because the plan around the subquery does not return its columns.
 */
private[skewext] case class OpaqueSubquery(plan: LogicalPlan) extends LeafNode {
  override def output: Seq[Attribute] = plan.output
}

private[skewext] object OpaqueSubquery {

  def hideIn(plan: LogicalPlan): LogicalPlan = plan.transformAllExpressions {
    // A subquery that still refers to outer columns needs their new ids.
    case subquery: SubqueryExpression if !subquery.plan.containsPattern(OUTER_REFERENCE) =>
      subquery.withNewPlan(OpaqueSubquery(subquery.plan))
  }

  def showIn(plan: LogicalPlan): LogicalPlan = plan.transformAllExpressions {
    case subquery: SubqueryExpression =>
      subquery.plan match {
        case OpaqueSubquery(hidden) => subquery.withNewPlan(hidden)
        case _ => subquery
      }
  }
}
