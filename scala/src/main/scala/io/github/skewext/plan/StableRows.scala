package io.github.skewext.plan

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.aggregate.{HashAggregateExec, ObjectHashAggregateExec, SortAggregateExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.python.{ArrowEvalPythonExec, BatchEvalPythonExec}
import org.apache.spark.sql.execution.window.{WindowExec, WindowGroupLimitExec}
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types._

/**
 * Whether a plan gives the same rows when it runs again, each task its own ones, whatever the order
 * in which its shuffles bring rows. Only then a row may be read twice, or sent somewhere by what is in
 * it: tasks that run before and after a failure agree on it. It is the one place that knows, and it
 * knows a list of nodes, functions and sources. Whatever is not in it is not taken for stable: an RDD,
 * a table of another system, a function over whole partitions.
 */
object StableRows {

  def areIn(plan: SparkPlan): Boolean = plan match {
    case stage: QueryStageExec => areIn(stage.plan)
    case reused: ReusedExchangeExec => areIn(reused.child)
    case adaptive: AdaptiveSparkPlanExec => areIn(adaptive.executedPlan)
    // What is cached may be lost, and is made again.
    case cached: InMemoryTableScanExec => areMadeBy(cached) && areIn(cached.relation.cachedPlan)
    case node => areMadeBy(node) && node.children.forall(areIn)
  }

  /** The same of a plan that is not planned yet, and may be in the midst of its optimization. */
  def areIn(session: SparkSession, plan: LogicalPlan): Boolean = Try {
    val state = session.sessionState
    val optimized = state.optimizer.execute(plan.clone())
    (optimized +: optimized.subqueriesAll).forall { each =>
      areIn(state.planner.plan(ReturnAnswer(each)).next())
    }
  }.getOrElse(false)

  /** Whether one node keeps it so. */
  def areMadeBy(node: SparkPlan): Boolean = isKnown(node) &&
    node.expressions.forall(e => e.deterministic && !e.exists(dependsOnOrder))

  private def isKnown(node: SparkPlan): Boolean = node match {
    case _: FileSourceScanExec | _: LocalTableScanExec | _: RangeExec | _: InMemoryTableScanExec =>
      true
    // Rows of a checkpoint are not made again: without its files, the query fails.
    case scan: RDDScanExec => scan.rdd.isCheckpointed || scan.name == "OneRowRelation"
    case _: ProjectExec | _: FilterExec | _: ExpandExec | _: GenerateExec | _: SortExec |
        _: UnionExec | _: CoalesceExec | _: CollectMetricsExec =>
      true
    case _: ColumnarToRowExec | _: RowToColumnarExec | _: WholeStageCodegenExec | _: InputAdapter |
        _: AQEShuffleReadExec | _: BroadcastExchangeLike =>
      true
    case shuffle: ShuffleExchangeLike =>
      shuffle.outputPartitioning match {
        case _: RoundRobinPartitioning => shuffle.conf.sortBeforeRepartition
        case _ => true
      }
    case _: HashJoin | _: SortMergeJoinExec | _: BroadcastNestedLoopJoinExec |
        _: CartesianProductExec =>
      true
    case _: HashAggregateExec | _: ObjectHashAggregateExec | _: SortAggregateExec => true
    case _: WindowExec => true
    // Which of the rows with equal sort keys are kept.
    case w: WindowGroupLimitExec => isRank(w.rankLikeFunction)
    case _: BatchEvalPythonExec | _: ArrowEvalPythonExec => true
    case _: KeepsStableRows => true
    case _ => false
  }

  private def dependsOnOrder(e: Expression): Boolean = e match {
    case a: AggregateExpression => !isExact(a.aggregateFunction)
    case w: WindowExpression => !isSameForPeers(w)
    case _ => false
  }

  /** Whether it is the same, bit by bit, in whatever order it sees the rows of its group. */
  private def isExact(function: AggregateFunction): Boolean = function match {
    case _: Count | _: BitAndAgg | _: BitOrAgg | _: BitXorAgg | _: HyperLogLogPlusPlus => true
    // Of -0.0 and 0.0, which are equal, the first one stays.
    case Min(child) => KeyTypes.comparedByBytes(child.dataType)
    case Max(child) => KeyTypes.comparedByBytes(child.dataType)
    // The buffer of a try_sum that has run over is null, also if what comes then would bring it back.
    case sum: Sum =>
      !isFloatingPoint(sum.child.dataType) && SparkShims.evalMode(sum) != EvalMode.TRY
    // The sum of whole numbers is a double here.
    case Average(child, mode) =>
      mode != EvalMode.TRY && (child.dataType match {
        case _: DecimalType | _: YearMonthIntervalType | _: DayTimeIntervalType => true
        case _ => false
      })
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
