package io.github.skewext.skew

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.python._
import org.apache.spark.sql.execution.window.WindowGroupLimitExec
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
    case _: LimitExec | _: TakeOrderedAndProjectExec | _: SampleExec => false
    // Which of the rows with equal sort keys are kept.
    case w: WindowGroupLimitExec => isRank(w.rankLikeFunction)
    // What users' functions make of the rows of a group or a partition.
    case _: WindowInPandasExec | _: AggregateInPandasExec | _: FlatMapGroupsInPandasExec |
        _: FlatMapCoGroupsInPandasExec | _: MapInBatchExec | _: MapPartitionsExec |
        _: MapGroupsExec | _: CoGroupExec =>
      false
    case _ => node.expressions.forall(e => e.deterministic && !e.exists(dependsOnOrder))
  }

  private def dependsOnOrder(e: Expression): Boolean = e match {
    case a: AggregateExpression =>
      a.aggregateFunction match {
        case _: Count | _: Min | _: Max => false
        case Sum(child, _) => isFloatingPoint(child.dataType)
        case _ => true
      }
    case w: WindowExpression => !isSameForPeers(w)
    case _ => false
  }

  /**
   * With equal sort keys, any row may come first. A rank does not tell which did, nor does an
   * aggregate whose frame has either all such rows or none.
   */
  private def isSameForPeers(window: WindowExpression): Boolean =
    window.windowFunction match {
      case _: AggregateExpression =>
        window.windowSpec.frameSpecification match {
          case SpecifiedWindowFrame(RangeFrame, _, _) => true
          case SpecifiedWindowFrame(_, UnboundedPreceding, UnboundedFollowing) => true
          case _ => false
        }
      case function => isRank(function)
    }

  private def isRank(function: Expression): Boolean = function match {
    case _: Rank | _: DenseRank | _: PercentRank | _: CumeDist => true
    case _ => false
  }

  private def isFloatingPoint(dataType: DataType): Boolean =
    dataType == DoubleType || dataType == FloatType
}
