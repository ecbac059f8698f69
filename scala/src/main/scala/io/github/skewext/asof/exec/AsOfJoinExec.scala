package io.github.skewext.asof.exec

import io.github.skewext.asof.AsOfMatch
import io.github.skewext.facts.MadeOf
import io.github.skewext.join.exec.{ShownColumns, SpineJoinExec, SplitInputs}
import io.github.skewext.shuffle.ReadsColumns

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.MultiZipRDD

/**
 * An [[AsOfOperator]] whose inputs are shuffled by their keys. The exchanges are its children.
 *
 * @param shown see [[ShownColumns]]
 */
case class AsOfJoinExec(
    children: Seq[SparkPlan],
    keys: Seq[Seq[Expression]],
    times: Seq[Expression],
    matches: Seq[AsOfMatch],
    ties: Seq[Seq[SortOrder]],
    within: Seq[Seq[Expression]],
    inner: Boolean,
    split: Option[SplitInputs] = None,
    shown: Option[Seq[NamedExpression]] = None)
    extends AsOfOperator
    with ReadsColumns
    with SpineJoinExec
    with ShownColumns {

  override def nodeName: String =
    AsOfJoinExec.Name + split.fold("")(how => s" (skew: ${how.describe})")

  override def simpleString(maxFields: Int): String =
    super.simpleString(maxFields) + split.fold("")(_.suffix)

  override protected def withShown(list: Seq[NamedExpression]): AsOfJoinExec =
    copy(shown = Some(list))

  /** Code that has no other operator would build the rows more slowly. */
  override def supportCodegen: Boolean = shown.isEmpty && super.supportCodegen

  override def requiredChildDistribution: Seq[Distribution] = keys.map { key =>
    if (split.isDefined) UnspecifiedDistribution
    else ClusteredDistribution(key, requireAllClusterKeys = true)
  }

  override def outputPartitioning: Partitioning = children.head.outputPartitioning match {
    case partitioning if split.isDefined => UnknownPartitioning(partitioning.numPartitions)
    case partitioning => partitioning
  }

  override def splitBy(parts: Seq[SparkPlan], how: SplitInputs): AsOfJoinExec =
    copy(children = parts, split = Some(how))

  override def madeOf: Seq[MadeOf.Part] =
    children.zipWithIndex.map { case (child, i) => MadeOf.Part(child, linear = i == 0) }

  override lazy val metrics: Map[String, SQLMetric] =
    operatorMetrics ++ split.fold(Map.empty[String, SQLMetric])(_.metrics(sparkContext))

  override protected def inputRows: Seq[RDD[InternalRow]] =
    split.fold(children.map(_.execute()))(_.rows(this))

  override protected def isRead(input: Int): Boolean = MultiZipRDD.isRead(children(input))

  // Candidates come from several tasks, in any order.
  override protected def isSorted(input: Int): Boolean = split.isEmpty && super.isSorted(input)

  override def candidates(
      input: Int,
      spine: RDD[InternalRow],
      part: RDD[InternalRow]): RDD[InternalRow] =
    new MultiZipRDD[InternalRow](
      sparkContext,
      Seq(sorted(spine, 0), sorted(part, input)),
      areReads = Seq(false, false),
      CandidateTask(task(makesRows = true, byHash = false), input))

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[SparkPlan]): AsOfJoinExec =
    copy(children = newChildren)
}

object AsOfJoinExec {

  /** The name in plans. */
  val Name = "AsOfJoin"
}
