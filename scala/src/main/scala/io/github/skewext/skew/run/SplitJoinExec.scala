package io.github.skewext.skew.run

import io.github.skewext.join.InputRole
import io.github.skewext.join.exec.{MultiFullJoinExec, MultiJoinExec, ShownColumns}
import io.github.skewext.platform.SkewConf
import io.github.skewext.rows.NormalizedKeys
import io.github.skewext.skew.plan.SkewSplits

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SQLExecution, SparkPlan}
import org.apache.spark.sql.skewext.MultiZipRDD

/**
 * A join in which several tasks share a partition, and each reads a part of it. It replaces a
 * [[MultiFullJoinExec]], or Spark's joins on one key. The latter have no common key columns,
 * because both sides show their own, so `keyOutput` is empty.
 *
 * @param splits the split partitions
 * @param shown see [[ShownColumns]]
 */
case class SplitJoinExec(
    children: Seq[SparkPlan],
    keys: Seq[Seq[Expression]],
    keyColumns: Seq[Seq[Attribute]],
    keyOutput: Seq[Attribute],
    roles: Seq[InputRole],
    indicator: Option[Attribute],
    mergesSorted: Boolean,
    spreadNullKeys: Boolean,
    splits: SkewSplits,
    shown: Option[Seq[NamedExpression]] = None)
    extends MultiJoinExec
    with ShownColumns {

  /** Only a multi-way join has key columns. */
  override def nodeName: String = {
    val kind = if (keyOutput.isEmpty) SplitJoinExec.Name else MultiFullJoinExec.Name
    s"$kind (skew: ${splits.describe})"
  }

  override def simpleString(maxFields: Int): String =
    super.simpleString(maxFields) + splits.suffix

  /**
   * With those that the join itself makes, which `shown` may have. Otherwise joins that show other
   * key columns would be equal, and Spark would reuse an exchange of one for the other.
   */
  override lazy val allAttributes: AttributeSeq =
    children.flatMap(_.output) ++ keyOutput ++ indicator

  override protected def ownMetrics: Seq[(String, SQLMetric)] =
    SplitMetrics.of(sparkContext, "marked keys").toSeq ++ Seq(
      "markTime" -> SQLMetrics.createTimingMetric(sparkContext, "time to mark keys"),
      "numPieceRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows of pieces"),
      "numResidualRows" ->
        SQLMetrics.createMetric(sparkContext, "number of output rows of residuals"))

  /**
   * Not needed: a slice of one input meets all rows that the other inputs have in the partition.
   */
  override def requiredChildDistribution: Seq[Distribution] =
    children.map(_ => UnspecifiedDistribution)

  /** Rows of one key are in several partitions. */
  override def outputPartitioning: Partitioning =
    UnknownPartitioning(children.head.outputPartitioning.numPartitions)

  override protected def joined(makesRows: Boolean): RDD[InternalRow] = {
    // The closure must not contain the plan.
    val join = task(makesRows)
    val tasks = skewTasks
    val inputs = children.map(_.execute()) ++ marks
    new MultiZipRDD[InternalRow](
      sparkContext,
      inputs,
      children.map(MultiZipRDD.isRead) ++ marks.map(_ => true),
      tasks.join(join, _, _))
  }

  @transient private lazy val skewTasks: SplitTasks = {
    SplitMetrics.report(splits, sparkContext, metrics)
    SplitTasks(
      splits.tasks(children.map(SplitReadSpecs.readsOf)),
      NormalizedKeys(normalizedKeys, conf.getConf(SkewConf.MULTI_JOIN_HASH_BITS)),
      children.map(c => RowShare.of(c.output)),
      pieceRows = longMetric("numPieceRows"),
      residualRows = longMetric("numResidualRows"))
  }

  /** Computed once for all executions of the join. */
  @transient private lazy val marks: Option[RDD[InternalRow]] = MarkKeys.sent(
    sparkContext,
    children,
    roles,
    skewTasks.keys,
    splits,
    skewTasks.tasks,
    longMetric("markTime"))

  override protected def withShown(list: Seq[NamedExpression]): SparkPlan =
    copy(shown = Some(list))

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): SplitJoinExec = copy(children = newChildren)
}

object SplitJoinExec {

  /** The name in plans of the split form of Spark's joins. */
  val Name = "SplitJoin"
}

/** The metrics of a join's splits, which are known before its tasks run. */
private[skewext] object SplitMetrics {

  private val counts: Seq[(String, String, SkewSplits => Int)] = Seq(
    ("numSkewedPartitions", "skewed partitions", _.partitions.size),
    ("numOutputSkewed", "partitions split for their output", _.splitByOutput),
    ("numPieces", "pieces", _.pieces),
    ("numResiduals", "residuals", _.residuals),
    ("numMarkingTasks", "tasks that %s before the join", _.markingTasks))

  /** @param marked what the tasks before the join did. */
  def of(sc: SparkContext, marked: String): Map[String, SQLMetric] =
    counts.map { case (name, text, _) =>
      name -> SQLMetrics.createMetric(sc, s"number of ${text.format(marked)}")
    }.toMap + ("rereadSize" -> SQLMetrics.createSizeMetric(sc, "data read again"))

  def report(splits: SkewSplits, sc: SparkContext, metrics: Map[String, SQLMetric]): Unit = {
    val values = counts.map { case (name, _, count) => name -> count(splits).toLong } :+
      ("rereadSize" -> splits.rereadBytes)
    values.foreach { case (name, value) => metrics(name).set(value) }
    SQLMetrics.postDriverMetricUpdates(
      sc,
      sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      values.map { case (name, _) => metrics(name) })
  }
}
