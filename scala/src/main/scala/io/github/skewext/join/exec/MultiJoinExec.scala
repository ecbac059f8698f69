package io.github.skewext.join.exec

import io.github.skewext.facts.KeepsStableRows
import io.github.skewext.join.{InputRole, JoinOrigin, MultiFullJoin, MultiJoinOutput}
import io.github.skewext.platform.{CanonicalOnce, SkewConf}
import io.github.skewext.rows.{FirstPresentColumn, GroupingSettings, IndicatorColumn, InputColumn, JoinKeys, KeyOrder, TaskOutput}
import io.github.skewext.shuffle.ReadsColumns

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{ExplainUtils, SparkPlan}
import org.apache.spark.sql.skewext.SqlInternals

/**
 * The common part of joins of N inputs, with and without split partitions: they group rows by key
 * and build columns from them. [[MultiFullJoin]] describes the parameters. Each operator declares
 * all of them, because Spark would not find expressions in a common parameter object.
 */
abstract class MultiJoinExec
    extends CombinationCodegen
    with KeepsStableRows
    with CanonicalOnce[SparkPlan]
    with ReadsColumns {

  def keys: Seq[Seq[Expression]]
  def keyColumns: Seq[Seq[Attribute]]
  def keyOutput: Seq[Attribute]
  def roles: Seq[InputRole]
  def indicator: Option[Attribute]

  /** Whether inputs that are all sorted by their keys are merged, in the order of the key. */
  protected def mergesSorted: Boolean

  /** Whether rows with a null key may be in any partition, see [[SpreadNullKeys]]. */
  def spreadNullKeys: Boolean

  override def output: Seq[Attribute] = allColumns

  /** All columns that the join can return. */
  protected def allColumns: Seq[Attribute] =
    MultiJoinOutput.of(
      children.map(_.output),
      keyColumns,
      keyOutput,
      roles,
      indicator,
      isCanonicalizedPlan)

  override def producedAttributes: AttributeSet = AttributeSet(keyOutput ++ indicator)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numGroups" -> SQLMetrics.createMetric(sparkContext, "number of distinct keys"),
    "numNullKeyRows" ->
      SQLMetrics.createMetric(sparkContext, "number of output rows with a null key"),
    "spillSize" -> SQLMetrics.createSizeMetric(sparkContext, "spill size"),
    "peakMemory" -> SQLMetrics.createSizeMetric(sparkContext, "peak memory")) ++
    children.indices.map { i =>
      inputRowsMetric(i) -> SQLMetrics.createMetric(sparkContext, s"number of rows of input $i")
    } ++ ownMetrics

  protected def ownMetrics: Seq[(String, SQLMetric)] = Nil

  private def inputRowsMetric(i: Int): String = s"numRowsOfInput$i"

  /** Whether all inputs are sorted by their keys, so that they are merged. */
  private[skewext] def comesOrdered: Boolean =
    mergesSorted && children.zip(keys).forall { case (child, key) =>
      SortOrder.orderingSatisfies(child.outputOrdering, key.map(SortOrder(_, Ascending)))
    }

  protected def task(makesRows: Boolean): MultiJoinTask = MultiJoinTask(
    output = TaskOutput(children.map(_.output.map(_.dataType)), outputColumns, makesRows),
    keys = JoinKeys(normalizedKeys, conf.getConf(SkewConf.MULTI_JOIN_HASH_BITS)),
    roles = roles,
    withIndicator = indicator.isDefined,
    ordered = if (comesOrdered) Some(KeyOrder(boundKeys(identity))) else None,
    grouping = GroupingSettings.of(conf),
    metrics = MultiJoinMetrics(
      outputRows = longMetric("numOutputRows"),
      inputRows = children.indices.map(i => longMetric(inputRowsMetric(i))),
      groups = longMetric("numGroups"),
      nullKeys = longMetric("numNullKeyRows"),
      spillSize = longMetric("spillSize"),
      peakMemory = longMetric("peakMemory")))

  /** The keys of each input in normalized form, bound to its rows. */
  protected def normalizedKeys: Seq[Seq[Expression]] = boundKeys(SqlInternals.normalizeFloats)

  private def boundKeys(form: Expression => Expression): Seq[Seq[Expression]] =
    keys.zip(children).map { case (key, child) =>
      key.map(e => BindReferences.bindReference(form(e), child.output))
    }

  override protected def outputColumns: Seq[Expression] = allColumnExpressions

  protected def allColumnExpressions: Seq[Expression] = {
    val ordinals = children.map(child => AttributeMap(child.output.zipWithIndex))
    val keyColumnsOut = keyOutput.zip(allColumns).zipWithIndex.map { case ((key, shown), j) =>
      val ofKey = children.indices.map(i => ordinals(i)(keyColumns(i)(j)))
      FirstPresentColumn(ofKey, key.dataType, shown.nullable)
    }
    val values = for {
      i <- children.indices if roles(i).isShown
      a <- MultiJoinOutput.valueColumns(children(i).output, keyColumns(i))
    } yield InputColumn(i, ordinals(i)(a), a.dataType, nullable = true)
    keyColumnsOut ++ values ++ indicator.map(a => IndicatorColumn(a.dataType))
  }

  /** A join of Spark's has no common key columns. */
  private def shownKey: Seq[String] =
    if (keyOutput.nonEmpty) keyOutput.map(_.name) else keys.head.map(_.sql)

  private def rewrittenFrom: Option[String] = logicalLink.flatMap(JoinOrigin.rewrittenFrom(_))

  override def simpleString(maxFields: Int): String =
    s"$nodeName ${MultiFullJoin.describe(shownKey, roles, indicator)}" +
      rewrittenFrom.map(joins => s", rewritten from $joins").getOrElse("")

  override def verboseStringWithOperatorId(): String = {
    val inputs = children.indices.map { i =>
      ExplainUtils.generateFieldString(s"Input $i (${roles(i).name}), key", keys(i))
    }
    val all = Seq(
      "Merges sorted inputs" -> comesOrdered.toString,
      "Spreads null keys" -> spreadNullKeys.toString) ++ rewrittenFrom.map("Rewritten from" -> _)
    (Seq("", formattedNodeName) ++ inputs ++
      Seq(ExplainUtils.generateFieldString("Output", output)) ++
      all.map { case (name, value) => ExplainUtils.generateFieldString(name, value) })
      .mkString("", "\n", "\n")
  }
}

/**
 * Joins one partition: the zip function of the operator's RDD. It contains no plan, so that a
 * serialized task is small.
 *
 * @param ordered if defined, all inputs are sorted by their keys in this order.
 */
private[skewext] case class MultiJoinTask(
    output: TaskOutput,
    keys: JoinKeys,
    roles: Seq[InputRole],
    withIndicator: Boolean,
    ordered: Option[KeyOrder],
    grouping: GroupingSettings,
    metrics: MultiJoinMetrics)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] =
    new MultiJoinIterator(this, inputs).toScala
}

/**
 * The operator's SQL metrics. A task adds to them once, at its end.
 *
 * @param ofKind output rows of tasks that do the same part of a split partition.
 */
private[skewext] case class MultiJoinMetrics(
    outputRows: SQLMetric,
    inputRows: Seq[SQLMetric],
    groups: SQLMetric,
    nullKeys: SQLMetric,
    spillSize: SQLMetric,
    peakMemory: SQLMetric,
    ofKind: Option[SQLMetric] = None)
