package io.github.skewext.join.range

import io.github.skewext.facts.{KeepsStableRows, MadeOf, PartitionwiseOperator}
import io.github.skewext.join.MarkedRows
import io.github.skewext.join.probe.PairKind

import org.apache.spark.TaskContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.skewext.BroadcastTable
import org.apache.spark.sql.types.DataType

/**
 * Spark's broadcast nested loop join, except that each row of the streamed side is tested only with
 * the rows of the broadcast side whose intervals touch its own ([[RangeMatch]]).
 *
 * With equal keys, it is Spark's broadcast hash join in the same way. The rows are then in Spark's
 * hash table, of which the driver makes an index for a second broadcast.
 *
 * As in Spark's join, unmatched rows of the broadcast side are found by a job that reads the streamed
 * side once more. Its tasks return the rows that they match as marks.
 */
case class BroadcastRangeJoinExec(
    left: SparkPlan,
    right: SparkPlan,
    buildSide: BuildSide,
    joinType: JoinType,
    condition: Option[Expression],
    leftKeys: Seq[Expression] = Nil,
    rightKeys: Seq[Expression] = Nil)
    extends RangeJoinOperator
    with KeepsStableRows
    with PartitionwiseOperator {

  override def nodeName: String = BroadcastRangeJoinExec.Name

  private val build = if (buildSide == BuildLeft) 0 else 1

  private def broadcast: SparkPlan = sides(build)

  private def streamed: SparkPlan = sides(1 - build)

  override lazy val metrics: Map[String, SQLMetric] = pairMetrics +
    ("markTime" -> SQLMetrics.createTimingMetric(sparkContext, "time to mark rows"))

  override def output: Seq[Attribute] = {
    def optional(side: SparkPlan) = side.output.map(_.withNullability(true))
    joinType match {
      case LeftOuter => left.output ++ optional(right)
      case RightOuter => optional(left) ++ right.output
      case FullOuter => optional(left) ++ optional(right)
      case existence: ExistenceJoin => left.output :+ existence.exists
      case LeftSemi | LeftAnti => left.output
      case _ => left.output ++ right.output
    }
  }

  /** The pairs of each streamed row are together, in the order of the streamed rows. */
  override def outputPartitioning: Partitioning =
    if (!needsMarks) streamed.outputPartitioning else super.outputPartitioning

  override def outputOrdering: Seq[SortOrder] =
    if (!needsMarks) streamed.outputOrdering else Nil

  /** Whether rows of the broadcast side are in the output by themselves. */
  private def needsMarks: Boolean =
    kind.shows(build, matched = true) || kind.showsUnmatched(build)

  override def madeOf: Seq[MadeOf.Part] =
    if (needsMarks) Nil else Seq(MadeOf.Part(streamed, linear = true))

  private[range] def mode: RangeBroadcastMode =
    RangeBroadcastMode(boundEnds(build), broadcast.output.map(_.dataType))

  override def requiredChildDistribution: Seq[Distribution] =
    if (leftKeys.isEmpty) {
      Seq(UnspecifiedDistribution, UnspecifiedDistribution)
        .updated(build, BroadcastDistribution(mode))
    } else {
      BroadcastHashJoinExec(
        leftKeys,
        rightKeys,
        joinType,
        buildSide,
        condition,
        left,
        right).requiredChildDistribution
    }

  @transient private lazy val relation: Broadcast[Array[InternalRow]] =
    if (leftKeys.isEmpty) {
      broadcast.executeBroadcast[Array[InternalRow]]()
    } else {
      val table = BroadcastTable.of(broadcast.executeBroadcast[Any]().value)
      sparkContext.broadcast(mode.transform(table.iterator.flatMap(_.allRows), None))
    }

  override protected def joined(makesRows: Boolean): RDD[InternalRow] = {
    val relation = this.relation
    val work = task(build, makesRows)
    def ofStreamed =
      streamed.execute().mapPartitions(rows => work.pairs(rows, relation.value, TaskContext.get()))
    if (!needsMarks) {
      ofStreamed
    } else {
      val marked = sparkContext.broadcast(marks(relation, work))
      val tasks = sparkContext.defaultParallelism
      val ofBroadcast = sparkContext.parallelize(0 until tasks, tasks).mapPartitions { slices =>
        slices.flatMap(work.ofBuildSide(relation.value, marked.value, _, tasks))
      }
      // Only rows of the broadcast side are in the output of a semi or an anti join.
      if (kind.pairs) sparkContext.union(ofStreamed, ofBroadcast) else ofBroadcast
    }
  }

  /** Which rows of the broadcast side have a match. */
  private def marks(relation: Broadcast[Array[InternalRow]], work: RangeJoinTask): Array[Byte] =
    MarkedRows.ofJob(streamed.execute(), longMetric("markTime"))(work.marks(_, relation.value))

  override protected def withNewChildrenInternal(
      newLeft: SparkPlan,
      newRight: SparkPlan): BroadcastRangeJoinExec = copy(left = newLeft, right = newRight)
}

object BroadcastRangeJoinExec {

  /** The name in plans. */
  val Name = "BroadcastRangeJoin"

  /** Whether the operator joins so. */
  def canJoin(joinType: JoinType): Boolean = PairKind.of(joinType).isDefined
}

/**
 * Broadcasts a side of a range join as a [[RangeRelation]].
 *
 * @param ends bound to the rows.
 * @param types of the columns of the rows.
 */
private[skewext] case class RangeBroadcastMode(ends: RangeEnds, types: Seq[DataType])
    extends BroadcastMode {

  override def transform(rows: Array[InternalRow]): Array[InternalRow] =
    transform(rows.iterator, Some(rows.length.toLong))

  override def transform(
      rows: Iterator[InternalRow],
      sizeHint: Option[Long]): Array[InternalRow] = {
    val builder = new RangeRelationBuilder(ends, types)
    lazy val toUnsafe = UnsafeProjection.create(types.toArray)
    rows.foreach {
      case row: UnsafeRow => builder.insert(row)
      case other => builder.insert(toUnsafe(other))
    }
    builder.result()
  }

  override lazy val canonicalized: BroadcastMode =
    RangeBroadcastMode(ends.map(_.canonicalized), types)
}
