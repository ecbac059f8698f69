package io.github.skewext.skew

import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.expressions.{Expression, WindowExpression}
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.window.WindowExecBase
import org.apache.spark.sql.execution.{LimitExec, SparkPlan, TakeOrderedAndProjectExec}
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

/**
 * Whether a plan gives the same rows when it runs again, whatever the order in which its shuffles
 * bring rows. Then tasks that read its rows twice, before and after a failure, agree on what is in
 * them. What is not known to be so is taken not to be.
 */
object StableRows {

  def areIn(plan: SparkPlan): Boolean = !plan.exists {
    case stage: QueryStageExec => !areIn(stage.plan)
    case node => !areMadeBy(node)
  }

  /** Whether one node keeps it so. */
  def areMadeBy(node: SparkPlan): Boolean = node match {
    // With equal sort keys, other rows come first.
    case _: WindowExecBase | _: LimitExec | _: TakeOrderedAndProjectExec => false
    case _ => node.expressions.forall(e => e.deterministic && !e.exists(dependsOnOrder))
  }

  private def dependsOnOrder(e: Expression): Boolean = e match {
    case a: AggregateExpression =>
      a.aggregateFunction match {
        case _: Count | _: Min | _: Max => false
        case Sum(child, _) => isFloatingPoint(child.dataType)
        case _ => true
      }
    case _: WindowExpression => true
    case _ => false
  }

  private def isFloatingPoint(dataType: DataType): Boolean =
    dataType == DoubleType || dataType == FloatType
}
