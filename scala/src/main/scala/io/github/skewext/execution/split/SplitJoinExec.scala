package io.github.skewext.execution.split

import io.github.skewext.execution.{InputColumn, MultiFullJoinExec, MultiJoinExec, NormalizedKeys}
import io.github.skewext.internal.{LogicalLinks, SkewConf}
import io.github.skewext.plan.InputRole

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SQLExecution, SparkPlan}
import org.apache.spark.sql.skewext.MultiZipRDD

/**
 * A join of which some partitions are joined by several tasks each: the inputs read them in parts. It
 * takes the place of a [[MultiFullJoinExec]], or of joins of Spark's on one key, which have no key
 * columns of their own (`keyOutput` is empty, as both sides show theirs).
 *
 * @param splits which partitions are split, and how
 * @param shown if defined, what is shown of the columns: those of a projection above, see `showing`
 */
case class SplitJoinExec(
    children: Seq[SparkPlan],
    keys: Seq[Seq[Expression]],
    keyColumns: Seq[Seq[Attribute]],
    keyOutput: Seq[Attribute],
    roles: Seq[InputRole],
    indicator: Option[Attribute],
    order: MultiFullJoinExec.Order,
    spreadNullKeys: Boolean,
    splits: SkewSplits,
    shown: Option[Seq[NamedExpression]] = None)
    extends MultiJoinExec
    with AliasHelper {

  override def nodeName: String = s"MultiFullJoin (skew: ${splits.describe})"

  override def output: Seq[Attribute] = shown.map(_.map(_.toAttribute)).getOrElse(allColumns)

  override protected def ownMetrics: Seq[(String, SQLMetric)] = Seq(
    "numSkewedPartitions" ->
      SQLMetrics.createMetric(sparkContext, "number of skewed partitions"),
    "numOutputSkewed" ->
      SQLMetrics.createMetric(sparkContext, "number of partitions split for their output"),
    "numPieces" -> SQLMetrics.createMetric(sparkContext, "number of pieces"),
    "numResiduals" -> SQLMetrics.createMetric(sparkContext, "number of residuals"),
    "rereadSize" -> SQLMetrics.createSizeMetric(sparkContext, "data read again"),
    "numMarkingTasks" ->
      SQLMetrics.createMetric(sparkContext, "number of tasks that marked keys before the join"),
    "markTime" -> SQLMetrics.createTimingMetric(sparkContext, "time to mark keys"),
    "numPieceRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows of pieces"),
    "numResidualRows" ->
      SQLMetrics.createMetric(sparkContext, "number of output rows of residuals"))

  /** The reads see to it: a part of one input meets all that the others have of the partition. */
  override def requiredChildDistribution: Seq[Distribution] =
    children.map(_ => UnspecifiedDistribution)

  /** The rows of a key are in several partitions. */
  override def outputPartitioning: Partitioning =
    UnknownPartitioning(children.head.outputPartitioning.numPartitions)

  override protected def joined(makesRows: Boolean): RDD[InternalRow] = {
    val joinTask = SplitJoinTask(task(makesRows), skewTasks)
    val inputs = children.map(SplitReads.execute(_)) ++ marks
    new MultiZipRDD[InternalRow](sparkContext, inputs, joinTask)
  }

  @transient private lazy val skewTasks: SplitTasks = {
    reportSplits()
    SplitTasks(
      splits.tasks(children.map(SplitReadSpecs.readsOf)),
      NormalizedKeys(normalizedKeys, conf.getConf(SkewConf.MULTI_JOIN_HASH_BITS)),
      children.map(c => RowShare.of(c.output)),
      pieceRows = longMetric("numPieceRows"),
      residualRows = longMetric("numResidualRows"))
  }

  /** Found once, however often the join is executed. */
  @transient private lazy val marks: Option[RDD[InternalRow]] = MarkKeys.sent(
    sparkContext,
    children,
    roles,
    skewTasks.keys,
    splits,
    skewTasks.tasks,
    longMetric("markTime"))

  private def reportSplits(): Unit = {
    val values = Seq(
      longMetric("numSkewedPartitions") -> splits.partitions.size.toLong,
      longMetric("numOutputSkewed") -> splits.splitByOutput.toLong,
      longMetric("numPieces") -> splits.pieces.toLong,
      longMetric("numResiduals") -> splits.residuals.toLong,
      longMetric("rereadSize") -> splits.rereadBytes,
      longMetric("numMarkingTasks") -> splits.markingTasks.toLong)
    values.foreach { case (metric, value) => metric.set(value) }
    SQLMetrics.postDriverMetricUpdates(
      sparkContext,
      sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      values.map(_._1))
  }

  override protected def outputColumns: Seq[Expression] =
    shown.map(_.map(shownColumn(_).get)).getOrElse(allColumnExpressions)

  /**
   * The join as what a projection shows of it, if that is columns, in any order and under any name,
   * or the first of several that is not null, as the key of a full outer join `USING (k)`. Then rows
   * are put together once, by the join. Of its order and its partitions, which are told by names of
   * columns, nothing is known anyway.
   */
  def showing(projection: Seq[NamedExpression]): Option[SplitJoinExec] = {
    val list = shown.fold(projection) { before =>
      val aliases = getAliasMap(before)
      projection.map(replaceAliasButKeepName(_, aliases))
    }
    if (list.forall(shownColumn(_).isDefined)) {
      // It stays the join of the query that it was planned for, and is not its projection.
      Some(LogicalLinks.replacing(this)(copy(shown = Some(list))))
    } else {
      None
    }
  }

  private def shownColumn(of: Expression): Option[Expression] = of match {
    case a: Attribute => columnsById.get(a.exprId)
    case Alias(child, _) => shownColumn(child)
    case Coalesce(several) =>
      val columns = several.flatMap(shownColumn).collect { case c: InputColumn => c }
      if (columns.size == several.size) Some(Coalesce(columns)) else None
    case _ => None
  }

  @transient private lazy val columnsById: Map[ExprId, Expression] =
    allColumns.map(_.exprId).zip(allColumnExpressions).toMap

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): SplitJoinExec = copy(children = newChildren)
}
