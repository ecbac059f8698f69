package io.github.skewext.technique

import org.apache.spark.sql.catalyst.expressions.{Attribute, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreePattern.OUTER_REFERENCE

/**
 * The plan of a subquery, hidden from Spark while it gives a copy of the plan around it new ids. Where
 * the optimizer has taken a correlated subquery's conditions out of it, Spark gives new ids to the
 * subquery's columns, and leaves the old ones in the conditions. None are needed: who has the
 * subquery's columns shows none of them.
 */
private case class SubqueryAsItIs(plan: LogicalPlan) extends LeafNode {
  override def output: Seq[Attribute] = plan.output
}

private object SubqueryAsItIs {

  def hideIn(plan: LogicalPlan): LogicalPlan = plan.transformAllExpressions {
    // Columns from outside that are still in the plan get new ids with those outside.
    case subquery: SubqueryExpression if !subquery.plan.containsPattern(OUTER_REFERENCE) =>
      subquery.withNewPlan(SubqueryAsItIs(subquery.plan))
  }

  def showIn(plan: LogicalPlan): LogicalPlan = plan.transformAllExpressions {
    case subquery: SubqueryExpression =>
      subquery.plan match {
        case SubqueryAsItIs(hidden) => subquery.withNewPlan(hidden)
        case _ => subquery
      }
  }
}
