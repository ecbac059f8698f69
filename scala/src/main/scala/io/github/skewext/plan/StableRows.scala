package io.github.skewext.plan

import scala.util.Try

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.aggregate.{BaseAggregateExec, HashAggregateExec, ObjectHashAggregateExec, SortAggregateExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, FileScan}
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.python.{ArrowEvalPythonExec, BatchEvalPythonExec, EvalPythonExec}
import org.apache.spark.sql.execution.window.{WindowExec, WindowGroupLimitExec}
import org.apache.spark.sql.skewext.{SelectColumnsExec, SparkShims}
import org.apache.spark.sql.types._

/**
 * Whether a plan gives the same rows when it runs again, each task its own ones, whatever the order
 * in which its shuffles bring rows. Only then a row may be read twice, or sent somewhere by what is in
 * it: tasks that run before and after a failure agree on it. It is the one place that knows, and it
 * knows a list of nodes, functions and sources. Whatever is not in it is not taken for stable: an RDD,
 * a table of another system, a function over whole partitions.
 */
object StableRows {

  def areIn(plan: SparkPlan): Boolean = areIn(plan, plan.outputSet)

  /**
   * Whether it gives these columns of the same rows, whatever its other columns are: the number that a
   * MERGE gives each row of its target does not concern the keys.
   */
  def areIn(plan: SparkPlan, columns: AttributeSet): Boolean = plan match {
    case stage: QueryStageExec => areIn(stage.plan, columns)
    case ReusedExchangeExec(output, child) => areIn(child, sameColumns(output, child, columns))
    case adaptive: AdaptiveSparkPlanExec => areIn(adaptive.executedPlan, columns)
    // What is cached may be lost, and is made again.
    case cached: InMemoryTableScanExec =>
      val made = cached.relation.cachedPlan
      areMadeBy(cached) && areIn(made, sameColumns(cached.relation.output, made, columns))
    case ProjectExec(list, child) =>
      val shown = list.filter(column => columns.contains(column.toAttribute))
      shown.forall(isSame) && areIn(child, references(shown))
    case union: UnionExec =>
      union.children.forall(child => areIn(child, sameColumns(union.output, child, columns)))
    case groups: BaseAggregateExec if ofGroupsAlone(groups, columns) =>
      groups.groupingExpressions.forall(isSame) &&
      areIn(groups.child, references(groups.groupingExpressions))
    // They have the rows of their child, and more columns.
    case node @ (_: WindowExec | _: EvalPythonExec)
        if columns.subsetOf(node.children.head.outputSet) =>
      areIn(node.children.head, columns)
    case node if areMadeBy(node) && passesColumns(node) =>
      val wanted = columns ++ references(node.expressions)
      node.children.forall(child => areIn(child, wanted.intersect(child.outputSet)))
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
  def areMadeBy(node: SparkPlan): Boolean = isKnown(node) && node.expressions.forall(isSame)

  private def isSame(e: Expression): Boolean = {
    // Delta counts rows by a function that gives what it is given, and says that it must stay there.
    val counted = e.transform {
      case counter: UnaryExpression if isCounterOfDelta(counter) => counter.child
    }
    counted.deterministic && !counted.exists(dependsOnOrder)
  }

  private[skewext] def isCounterOfDelta(e: Expression): Boolean =
    e.getClass.getName == "org.apache.spark.sql.delta.metric.IncrementMetric"

  /**
   * Whether its columns are its children's, and its expressions all there is to say which of their rows
   * it has, and in which task.
   */
  private def passesColumns(node: SparkPlan): Boolean = node match {
    case _: FilterExec | _: SortExec | _: CoalesceExec | _: BroadcastExchangeLike |
        _: AQEShuffleReadExec | _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec |
        _: RowToColumnarExec | _: SelectColumnsExec =>
      true
    case shuffle: ShuffleExchangeLike =>
      !shuffle.outputPartitioning.isInstanceOf[RoundRobinPartitioning]
    case join: BaseJoinExec => !join.joinType.isInstanceOf[ExistenceJoin]
    case ours: KeepsStableRows => ours.passesColumns
    case _ => false
  }

  /** Whether these columns tell one group from the other, and nothing of what is in it. */
  private def ofGroupsAlone(groups: BaseAggregateExec, columns: AttributeSet): Boolean = {
    val shown = groups.resultExpressions.filter(e => columns.contains(e.toAttribute))
    shown.forall(isSame) &&
    references(shown).subsetOf(AttributeSet(groups.groupingExpressions.map(_.toAttribute)))
  }

  private def references(expressions: Seq[Expression]): AttributeSet =
    AttributeSet.fromAttributeSets(expressions.map(_.references))

  /** The columns of one who has the rows of another under other names. */
  private def sameColumns(
      output: Seq[Attribute],
      of: SparkPlan,
      columns: AttributeSet): AttributeSet =
    AttributeSet(output.zip(of.output).collect { case (a, b) if columns.contains(a) => b })

  private def isKnown(node: SparkPlan): Boolean = node match {
    case _: FileSourceScanExec | _: LocalTableScanExec | _: RangeExec | _: InMemoryTableScanExec =>
      true
    case scan: BatchScanExec => readsFixedFiles(scan.scan)
    // Rows of a checkpoint are not made again: without its files, the query fails.
    case scan: RDDScanExec if scan.rdd.isCheckpointed => true
    // Without a FROM: an RDD, or from Spark 4 on a node of its own.
    case one: LeafExecNode if one.nodeName == "Scan OneRowRelation" => true
    case _: ProjectExec | _: FilterExec | _: SelectColumnsExec | _: ExpandExec | _: GenerateExec |
        _: SortExec | _: UnionExec | _: CoalesceExec | _: CollectMetricsExec =>
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

  /** Files that are named when the query is planned: Spark's own, and those of one snapshot. */
  private def readsFixedFiles(scan: Scan): Boolean = scan match {
    case _: FileScan => true
    case _ => scan.getClass.getName.startsWith("org.apache.iceberg.spark.source.")
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
