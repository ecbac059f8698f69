package io.github.skewext.facts

import scala.util.Try

import io.github.skewext.platform.BegunBroadcast

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, FileScan}
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.python.{ArrowEvalPythonExec, BatchEvalPythonExec, EvalPythonExec}
import org.apache.spark.sql.execution.window.{WindowExec, WindowGroupLimitExec}
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types._

/**
 * Decides whether the rows of a plan are stable: deterministic and repeatable. Then each task
 * returns the same rows when it runs again, in whatever order its shuffles deliver rows. Only
 * stable rows may be read twice or routed by their content, because tasks before and after a
 * failure must agree.
 *
 * This is the only place that decides it, from an allow-list of nodes, functions and sources.
 * Anything else is not stable: an RDD, a table of another system, a function over whole partitions.
 */
object StableRows {

  def areIn(plan: SparkPlan): Boolean = areIn(plan, plan.outputSet)

  /**
   * Whether these columns of the plan's rows are stable. Other columns may be unstable, such as the
   * number that a MERGE gives each row of its target, which does not affect the keys.
   */
  def areIn(plan: SparkPlan, columns: AttributeSet): Boolean = plan match {
    case stage: QueryStageExec => areIn(stage.plan, columns)
    case BegunBroadcast(stage) => areIn(stage, columns)
    case ReusedExchangeExec(output, child) => areIn(child, sameColumns(output, child, columns))
    case adaptive: AdaptiveSparkPlanExec => areIn(adaptive.executedPlan, columns)
    // A cached block may be lost, and is then recomputed.
    case cached: InMemoryTableScanExec =>
      val made = cached.relation.cachedPlan
      areMadeBy(cached) && areIn(made, sameColumns(cached.relation.output, made, columns))
    case ProjectExec(list, child) =>
      val shown = list.filter(column => columns.contains(column.toAttribute))
      shown.forall(isSame) && areIn(child, references(shown))
    case union: UnionExec =>
      union.children.forall(child => areIn(child, sameColumns(union.output, child, columns)))
    case groups: BaseAggregateExec if ofGroupsAlone(groups, columns) =>
      groups.groupingExpressions.forall(isSame) && hasExactGroups(groups) &&
      areIn(groups.child, references(groups.groupingExpressions))
    // These nodes add columns to the rows of their child.
    case node @ (_: WindowExec | _: EvalPythonExec)
        if columns.subsetOf(node.children.head.outputSet) =>
      areIn(node.children.head, columns)
    case ours: KeepsStableRows if !ours.passesColumns =>
      areMadeBy(ours) && ours.children.zip(ours.columnsRead).forall { case (child, read) =>
        areIn(child, read)
      }
    case node if areMadeBy(node) && passesColumns(node) =>
      val wanted = columns ++ references(node.expressions)
      node.children.forall(child => areIn(child, wanted.intersect(child.outputSet)))
    case node => areMadeBy(node) && node.children.forall(areIn)
  }

  /**
   * Whether the rows of each copy of a logical plan, which may be only partly optimized, are the same.
   * Copies may be pruned to different columns.
   */
  def areInCopies(session: SparkSession, plan: LogicalPlan): Boolean = Try {
    val state = session.sessionState
    val optimized = state.optimizer.execute(plan.clone())
    (optimized +: optimized.subqueriesAll).forall { each =>
      val planned = state.planner.plan(ReturnAnswer(each)).next()
      areIn(planned) && !planned.exists {
        case ours: KeepsStableRows => !ours.isSameIfPruned
        case _ => false
      }
    }
  }.getOrElse(false)

  /** Whether the rows of the node are stable if those of its children are. */
  def areMadeBy(node: SparkPlan): Boolean = isKnown(node) && node.expressions.forall(isSame)

  private def isSame(e: Expression): Boolean = {
    // Some functions return their argument, and are marked as not deterministic only so that Spark
    // does not move them. Delta counts rows with such a function.
    val shown = e.transform {
      case KeptInPlace(child) => child
      case counter: UnaryExpression if isCounterOfDelta(counter) => counter.child
    }
    shown.deterministic && !shown.exists(e => dependsOnOrder(e) || isRandom(e))
  }

  /**
   * `aes_encrypt` draws an initialization vector, and Spark does not say so. Nor does it say that a
   * merge of KLL sketches drops values at random.
   */
  private def isRandom(e: Expression): Boolean = e match {
    case call: StaticInvoke => call.functionName == "aesEncrypt"
    case other => other.prettyName.startsWith("kll_sketch_merge")
  }

  private[skewext] def isCounterOfDelta(e: Expression): Boolean =
    e.getClass.getName == "org.apache.spark.sql.delta.metric.IncrementMetric"

  /**
   * Whether the node returns columns of its children, and its expressions alone determine which
   * rows it returns, and in which task.
   */
  private def passesColumns(node: SparkPlan): Boolean = node match {
    case _: FilterExec | _: SortExec | _: CoalesceExec | _: BroadcastExchangeLike |
        _: AQEShuffleReadExec | _: WholeStageCodegenExec | _: InputAdapter | _: ColumnarToRowExec |
        _: RowToColumnarExec =>
      true
    case shuffle: ShuffleExchangeLike => dividesByExpressions(shuffle.outputPartitioning)
    case join: BaseJoinExec => !join.joinType.isInstanceOf[ExistenceJoin]
    case ours: KeepsStableRows => ours.passesColumns
    case _ => false
  }

  /**
   * Whether these columns depend only on the grouping expressions, and not on the rows of a group.
   */
  private def ofGroupsAlone(groups: BaseAggregateExec, columns: AttributeSet): Boolean = {
    val shown = groups.resultExpressions.filter(e => columns.contains(e.toAttribute))
    shown.forall(isSame) &&
    references(shown).subsetOf(AttributeSet(groups.groupingExpressions.map(_.toAttribute)))
  }

  /** Otherwise the value of a group is that of the row that arrives first, such as 'a' or 'A'. */
  private def hasExactGroups(groups: BaseAggregateExec): Boolean =
    !groups.groupingExpressions.exists(key => ComparedByBytes.mayDiffer(key.dataType))

  private def references(expressions: Seq[Expression]): AttributeSet =
    AttributeSet.fromAttributeSets(expressions.map(_.references))

  /** The columns of `of` that are called `columns` in `output`, which has the same rows. */
  private def sameColumns(
      output: Seq[Attribute],
      of: SparkPlan,
      columns: AttributeSet): AttributeSet =
    AttributeSet(output.zip(of.output).collect { case (a, b) if columns.contains(a) => b })

  private def isKnown(node: SparkPlan): Boolean = node match {
    case _: FileSourceScanExec | _: LocalTableScanExec | _: RangeExec | _: InMemoryTableScanExec =>
      true
    case scan: BatchScanExec => readsFixedFiles(scan.scan)
    // Spark does not recompute the rows of a checkpoint. Without its files, the query fails.
    case scan: RDDScanExec if scan.rdd.isCheckpointed => true
    case _: CommandResultExec => true
    // That of a query without FROM, an RDD of one row before Spark 4.1, and of one found empty.
    case leaf: LeafExecNode if leaf.nodeName == "Scan OneRowRelation" || isNewer(leaf) => true
    case _: ProjectExec | _: FilterExec | _: ExpandExec | _: GenerateExec | _: SortExec |
        _: UnionExec | _: CoalesceExec | _: CollectMetricsExec =>
      true
    case _: ColumnarToRowExec | _: RowToColumnarExec | _: WholeStageCodegenExec | _: InputAdapter |
        _: AQEShuffleReadExec | _: BroadcastExchangeLike =>
      true
    case shuffle: ShuffleExchangeLike =>
      shuffle.outputPartitioning match {
        case _: RoundRobinPartitioning => shuffle.conf.sortBeforeRepartition
        case other => dividesByExpressions(other)
      }
    case _: HashJoin | _: SortMergeJoinExec | _: BroadcastNestedLoopJoinExec |
        _: CartesianProductExec =>
      true
    case groups: BaseAggregateExec => hasExactGroups(groups)
    case _: WindowExec => true
    // A row number would select any of the rows with equal sort keys.
    case w: WindowGroupLimitExec => isRank(w.rankLikeFunction)
    case _: BatchEvalPythonExec | _: ArrowEvalPythonExec => true
    case _: KeepsStableRows => true
    case _ => false
  }

  /**
   * Whether the expressions of a partitioning alone decide where a row goes. Spark 4.3's
   * `NullAwareHashPartitioning` does not: it deals rows with a null key to all partitions in turn.
   */
  private def dividesByExpressions(partitioning: Partitioning): Boolean = partitioning match {
    case SinglePartition | _: HashPartitioning | _: RangePartitioning => true
    case other => isNewer(other)
  }

  /** Recognizes classes by their names that not all lines of Spark have. */
  private def isNewer(part: AnyRef): Boolean = Newer(part.getClass.getName)

  private val Newer = Set(
    "org.apache.spark.sql.execution.EmptyRelationExec",
    // A column has the number of each row's partition: `repartitionById`.
    "org.apache.spark.sql.catalyst.plans.physical.ShufflePartitionIdPassThrough")

  /**
   * Whether the files are fixed when the query is planned: those of Spark's sources, and those of
   * an Iceberg snapshot.
   */
  private def readsFixedFiles(scan: Scan): Boolean = scan match {
    case _: FileScan => true
    case _ => scan.getClass.getName.startsWith("org.apache.iceberg.spark.source.")
  }

  private def dependsOnOrder(e: Expression): Boolean = e match {
    case a: AggregateExpression => !isExact(a.aggregateFunction)
    case w: WindowExpression => !isSameForPeers(w)
    case _ => false
  }

  /** Whether the result is identical, bit by bit, for any order of the rows of the group. */
  private def isExact(function: AggregateFunction): Boolean = function match {
    case _: Count | _: BitAndAgg | _: BitOrAgg | _: BitXorAgg | _: HyperLogLogPlusPlus => true
    // Spark filters a side of a join by it.
    case _: BloomFilterAggregate => true
    // -0.0 equals 0.0, and the function returns whichever it sees first.
    case Min(child) => ComparedByBytes(child.dataType)
    case Max(child) => ComparedByBytes(child.dataType)
    case sum: Sum => isExactSum(sum.child.dataType, SparkShims.evalMode(sum))
    // For integers, the buffer of the sum is a double.
    case Average(child, mode) =>
      child.dataType match {
        case _: DecimalType | _: YearMonthIntervalType | _: DayTimeIntervalType =>
          isExactSum(child.dataType, mode)
        case _ => false
      }
    case _ => false
  }

  /**
   * Rows with equal sort keys (peers) may have any order. A rank does not depend on that order, nor
   * does an aggregate whose frame contains either all peers or none.
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

  /**
   * Whether the order of the values cannot be seen in their sum. A sum that overflows and is no error
   * becomes null, and stays so although later values would bring it back into the range. Only whole
   * numbers wrap around. Spark has room for 10^10 decimals, as far as 38 digits allow.
   */
  private def isExactSum(dataType: DataType, mode: EvalMode.Value): Boolean = dataType match {
    case DoubleType | FloatType => false
    case _ if mode == EvalMode.TRY => false
    case decimal: DecimalType =>
      mode == EvalMode.ANSI || decimal.precision + 10 <= DecimalType.MAX_PRECISION
    case _ => true
  }
}

/**
 * An operator of skewext whose rows are stable if the rows of its children are, see [[StableRows]].
 */
trait KeepsStableRows extends SparkPlan {

  /**
   * Whether the operator returns columns of its child, and its expressions alone determine which
   * rows it returns, and in which task.
   */
  def passesColumns: Boolean = false

  /** Of each child, the columns that decide which rows the node gives. */
  def columnsRead: Seq[AttributeSet] = children.map(_.outputSet)

  /** Whether the operator selects the same rows if some of their columns are pruned. */
  def isSameIfPruned: Boolean = true

  /** Whether the expressions read all of each column, so that nothing of these can be pruned. */
  protected def readAll(expressions: Seq[Expression], columns: AttributeSet): Boolean = {
    def read(e: Expression): Seq[Attribute] = e match {
      case a: Attribute => Seq(a)
      case _: ExtractValue => Nil
      case other => other.children.flatMap(read)
    }
    columns.subsetOf(AttributeSet(expressions.flatMap(read)))
  }
}
