package io.github.skewext.multijoin

import java.util.concurrent.TimeUnit

import io.github.skewext.SkewConf
import io.github.skewext.multijoin.MultiFullJoinExec.{Natural, NoOrder}
import io.github.skewext.rewrite.RewriteReason
import io.github.skewext.skew.{KeepsStableRows, PartitionedInput, RowShare, SkewReason, SkewSplits, SplitReads}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{ExplainUtils, SQLExecution, SparkPlan}
import org.apache.spark.sql.skewext.{MultiZipRDD, SqlInternals}

/**
 * Joins N inputs that are partitioned by their keys in one pass. See [[MultiFullJoin]] for what the
 * parameters mean.
 *
 * The exchanges are the direct children: rows are brought together by key inside, because sorting
 * them before, with a `SortExec` each, means to copy and to hash every row twice, and to read them
 * in an order that misses the processor's caches. Inputs that are sorted by their keys already are
 * merged as they are.
 *
 * @param order whether the order of the keys matters; part of the plan, as what is above may rely on it
 * @param spreadBy if defined, what the rows of each input are partitioned by besides the key, so that
 *                 those with a null key may be in any partition, see [[SpreadNullKeys]]
 * @param split if defined, partitions that several tasks join: the inputs read them in parts
 * @param shown if defined, what is shown of the columns: those of a projection above, see `showing`
 */
case class MultiFullJoinExec(
    children: Seq[SparkPlan],
    keys: Seq[Seq[Expression]],
    keyColumns: Seq[Seq[Attribute]],
    keyOutput: Seq[Attribute],
    roles: Seq[InputRole],
    indicator: Option[Attribute],
    order: MultiFullJoinExec.Order,
    spreadBy: Seq[Expression] = Nil,
    split: Option[SkewSplits] = None,
    shown: Option[Seq[NamedExpression]] = None)
    extends CombinationCodegen
    with AliasHelper
    with KeepsStableRows {

  def spreadNullKeys: Boolean = spreadBy.nonEmpty

  override def nodeName: String =
    split.map(s => s"MultiFullJoin (skew: ${s.describe})").getOrElse("MultiFullJoin")

  override def output: Seq[Attribute] = shown.map(_.map(_.toAttribute)).getOrElse(allColumns)

  private def allColumns: Seq[Attribute] =
    MultiFullJoin.output(children.map(_.output), keyColumns, keyOutput, roles, indicator)

  override def producedAttributes: AttributeSet = AttributeSet(keyOutput ++ indicator)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numGroups" -> SQLMetrics.createMetric(sparkContext, "number of distinct keys"),
    "numNullKeyRows" ->
      SQLMetrics.createMetric(sparkContext, "number of output rows with a null key"),
    "spillSize" -> SQLMetrics.createSizeMetric(sparkContext, "spill size"),
    "peakMemory" -> SQLMetrics.createSizeMetric(sparkContext, "peak memory")) ++ children.indices
    .map { i =>
      inputRowsMetric(i) -> SQLMetrics.createMetric(sparkContext, s"number of rows of input $i")
    } ++ (if (split.isDefined) skewMetrics else Nil)

  private def skewMetrics: Seq[(String, SQLMetric)] = Seq(
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

  private def inputRowsMetric(i: Int): String = s"numRowsOfInput$i"

  override def requiredChildDistribution: Seq[Distribution] = if (split.isDefined) {
    // The reads see to it: a part of one input meets all that the others have of the partition.
    children.map(_ => UnspecifiedDistribution)
  } else {
    keys.zipWithIndex.map { case (key, i) =>
      // All of the key: Spark compares the partitionings of the children pairwise with one of them,
      // and with parts of the key two may agree with a third that do not agree with each other.
      ClusteredDistribution(key ++ spreadBy.lift(i), requireAllClusterKeys = true)
    }
  }

  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    if (order == Natural) naturalOrder else children.map(_ => Nil)

  override def outputOrdering: Seq[SortOrder] =
    if (split.nonEmpty) {
      Nil
    } else if (comesOrdered && isOfSpark) {
      inEachRow.map(keys).transpose.map(key => SortOrder(key.head, Ascending, key.tail))
    } else if (comesOrdered && keys.zip(keyColumns).forall { case (k, c) => k == c }) {
      keyOutput.map(SortOrder(_, Ascending))
    } else {
      Nil
    }

  /** One of Spark's joins, done by this operator: it shows the columns of the inputs, keys among them. */
  private def isOfSpark: Boolean = keyOutput.isEmpty

  /** The inputs that have a row in each of the output's. */
  private def inEachRow: Seq[Int] = roles.indices.filter(roles(_) == InputRole.Required)

  private def naturalOrder: Seq[Seq[SortOrder]] = keys.map(_.map(SortOrder(_, Ascending)))

  /** Whether all inputs are sorted by their keys, and are to be merged as they are. */
  private[skewext] def comesOrdered: Boolean =
    order != NoOrder && children.zip(naturalOrder).forall { case (child, required) =>
      SortOrder.orderingSatisfies(child.outputOrdering, required)
    }

  /**
   * All inputs are partitioned alike and every key comes out of its own partition, so what is true
   * of one input's keys is true of the output's. Not of a key that is computed for the comparison:
   * the output does not show it. Nor of an input that has one column as two keys: what its
   * partitioning says of that column, it would say of either. Nor where partitions are split: the
   * rows of a key are in several of them.
   */
  override def outputPartitioning: Partitioning = if (split.isDefined) {
    UnknownPartitioning(children.head.outputPartitioning.numPartitions)
  } else if (isOfSpark) {
    inEachRow.map(children(_).outputPartitioning) match {
      case Nil => UnknownPartitioning(children.head.outputPartitioning.numPartitions)
      case Seq(one) => one
      case several => PartitioningCollection(several)
    }
  } else {
    def overKeyOutput(input: Int, partitioning: Partitioning): Option[Partitioning] = {
      def translate(e: Expression): Option[Expression] = {
        val j = keys(input).indexWhere(_.semanticEquals(e))
        // In place of one of Spark's joins it has no key columns.
        if (keyColumns(input).lift(j).exists(_.semanticEquals(e))) Some(keyOutput(j)) else None
      }
      def translateAll(expressions: Seq[Expression]): Option[Seq[Expression]] = {
        val translated = expressions.map(translate)
        if (translated.forall(_.isDefined)) Some(translated.flatten) else None
      }
      partitioning match {
        case h: HashPartitioning => translateAll(h.expressions).map(e => h.copy(expressions = e))
        case c: CoalescedHashPartitioning =>
          translateAll(c.from.expressions).map(e => c.copy(from = c.from.copy(expressions = e)))
        case SinglePartition => Some(SinglePartition)
        case PartitioningCollection(all) =>
          all.flatMap(overKeyOutput(input, _)).headOption
        case _ => None
      }
    }
    val shown = keys.flatten.zip(keyColumns.flatten).forall { case (k, c) => k.semanticEquals(c) }
    children.indices.view
      .filter(_ => shown)
      .filter(i => keys(i).map(_.canonicalized).distinct.size == keys(i).size)
      .flatMap(i => overKeyOutput(i, children(i).outputPartitioning))
      .headOption
      .getOrElse(UnknownPartitioning(children.head.outputPartitioning.numPartitions))
  }

  override protected def doExecute(): RDD[InternalRow] = joined(makesRows = true)

  override protected def combinations: RDD[InternalRow] = joined(makesRows = false)

  private def joined(makesRows: Boolean): RDD[InternalRow] = {
    val joinTask = task(makesRows)
    val rows = children.indices.map { i =>
      if (split.isDefined) {
        SplitReads.execute(children(i))
      } else {
        // Rows that come in order are not kept, so what they cost is mostly that of making them.
        (if (comesOrdered) BatchRows.of(children(i)) else None).getOrElse(children(i).execute())
      }
    }
    new MultiZipRDD[InternalRow](sparkContext, rows, joinTask)
  }

  private def task(makesRows: Boolean): MultiJoinTask = MultiJoinTask(
    inputTypes = children.map(_.output.map(_.dataType)),
    keys = JoinKeys(
      boundKeys(SqlInternals.normalizeFloats),
      conf.getConf(SkewConf.MULTI_JOIN_HASH_BITS)),
    roles = roles,
    output = outputColumns,
    makesRows = makesRows,
    withIndicator = indicator.isDefined,
    ordered = if (comesOrdered) Some(KeyOrder(boundKeys(identity))) else None,
    grouping = GroupingSettings(
      sortAlways = conf.getConf(SkewConf.MULTI_JOIN_GROUPING) == "sort",
      maxRowsInMemory = conf.getConf(SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY),
      groupRowsInMemory = conf.getConf(SkewConf.MULTI_JOIN_GROUP_ROWS_IN_MEMORY)),
    skew = skewTasks,
    metrics = MultiJoinMetrics(
      outputRows = longMetric("numOutputRows"),
      inputRows = children.indices.map(i => longMetric(inputRowsMetric(i))),
      groups = longMetric("numGroups"),
      nullKeys = longMetric("numNullKeyRows"),
      spillSize = longMetric("spillSize"),
      peakMemory = longMetric("peakMemory")))

  /** Runs a job, if keys are to be known before the join; once, however often the join is executed. */
  @transient private lazy val skewTasks: Option[SkewJoinTasks] = split.map { splits =>
    val tasks = splits.tasks(children.map(PartitionedInput.reads))
    val normalizedKeys = NormalizedKeys(
      boundKeys(SqlInternals.normalizeFloats),
      conf.getConf(SkewConf.MULTI_JOIN_HASH_BITS))
    val started = System.nanoTime()
    val metKeys = MarkKeys.run(sparkContext, children, roles, normalizedKeys, splits, tasks)
    reportSplits(splits, TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - started))
    SkewJoinTasks(
      tasks,
      normalizedKeys,
      children.map(c => RowShare.of(c.output)),
      metKeys,
      pieceRows = longMetric("numPieceRows"),
      residualRows = longMetric("numResidualRows"))
  }

  private def reportSplits(splits: SkewSplits, markMillis: Long): Unit = {
    val values = Seq(
      longMetric("numSkewedPartitions") -> splits.partitions.size.toLong,
      longMetric("numOutputSkewed") -> splits.splitByOutput.toLong,
      longMetric("numPieces") -> splits.pieces.toLong,
      longMetric("numResiduals") -> splits.residuals.toLong,
      longMetric("rereadSize") -> splits.rereadBytes,
      longMetric("numMarkingTasks") -> splits.markingTasks.toLong,
      longMetric("markTime") -> (if (splits.markingTasks > 0) markMillis else 0L))
    values.foreach { case (metric, value) => metric.set(value) }
    SQLMetrics.postDriverMetricUpdates(
      sparkContext,
      sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      values.map(_._1))
  }

  private def boundKeys(form: Expression => Expression): Seq[Seq[Expression]] =
    keys.zip(children).map { case (key, child) =>
      key.map(e => BindReferences.bindReference(form(e), child.output))
    }

  override protected def outputColumns: Seq[Expression] =
    shown.map(_.map(shownColumn(_).get)).getOrElse(allColumnExpressions)

  private def allColumnExpressions: Seq[Expression] = {
    def ordinal(input: Int, a: Attribute): Int =
      children(input).output.indexWhere(_.exprId == a.exprId)
    val keyColumnsOut = keyOutput.indices.map { j =>
      val ordinals = children.indices.map(i => ordinal(i, keyColumns(i)(j)))
      FirstPresentColumn(ordinals, keyOutput(j).dataType, allColumns(j).nullable)
    }
    val values = for {
      i <- children.indices if roles(i).isShown
      a <- MultiFullJoin.valueColumns(children(i).output, keyColumns(i))
    } yield InputColumn(i, ordinal(i, a), a.dataType, nullable = true)
    keyColumnsOut ++ values ++ indicator.map(a => IndicatorColumn(a.dataType))
  }

  /**
   * The join as what a projection shows of it, if that is columns, in any order and under any name,
   * or the first of several that is not null, as the key of a full outer join `USING (k)`. Then rows
   * are put together once, by the join. Only of a split join: of its order and its partitions, which
   * are told by names of columns, nothing is known anyway.
   */
  def showing(projection: Seq[NamedExpression]): Option[MultiFullJoinExec] = {
    val list = shown.fold(projection) { before =>
      val aliases = getAliasMap(before)
      projection.map(replaceAliasButKeepName(_, aliases))
    }
    if (split.isDefined && list.forall(shownColumn(_).isDefined)) {
      val showing = copy(shown = Some(list))
      // It stays the join of the query that it was planned for, and is not its projection.
      showing.copyTagsFrom(this)
      Some(showing)
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

  /** One of Spark's joins that is split has no key columns of its own. */
  private def shownKey: Seq[String] =
    if (keyOutput.nonEmpty) keyOutput.map(_.name) else keys.head.map(_.sql)

  private def rewrittenFrom: Option[String] = logicalLink.flatMap(RewriteReason.madeOf(_))

  override def simpleString(maxFields: Int): String =
    s"$nodeName ${MultiFullJoin.describe(shownKey, roles, indicator)}" +
      rewrittenFrom.map(joins => s", rewritten from $joins").getOrElse("") +
      SkewReason.of(this).filter(_.ofSkewedJoin).map(r => s", not split: ${r.text}").getOrElse("")

  override def verboseStringWithOperatorId(): String = {
    val inputs = children.indices.map { i =>
      ExplainUtils.generateFieldString(s"Input $i (${roles(i).name}), key", keys(i))
    }
    s"""
       |$formattedNodeName
       |${inputs.mkString("\n")}
       |${ExplainUtils.generateFieldString("Output", output)}
       |${ExplainUtils.generateFieldString("Merges sorted inputs", comesOrdered.toString)}
       |${ExplainUtils.generateFieldString("Spreads null keys", spreadNullKeys.toString)}
       |""".stripMargin + rewrittenFrom
      .map(joins => s"${ExplainUtils.generateFieldString("Rewritten from", joins)}\n")
      .getOrElse("")
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): MultiFullJoinExec = copy(children = newChildren)
}

object MultiFullJoinExec {

  /** Whether keys come out in order. */
  sealed abstract class Order(val name: String) extends Serializable

  /** In their natural order where the inputs come sorted by them. */
  case object AutoOrder extends Order("auto")

  /** In their natural order; inputs that are not sorted are sorted. */
  case object Natural extends Order("natural")

  /** In no order, even where the inputs come sorted. */
  case object NoOrder extends Order("none")

  val orders: Seq[Order] = Seq(AutoOrder, Natural, NoOrder)
}
