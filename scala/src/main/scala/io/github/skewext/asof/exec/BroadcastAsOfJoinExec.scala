package io.github.skewext.asof.exec

import io.github.skewext.asof.AsOfMatch
import io.github.skewext.join.exec.KeysTogether

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.PartitionValues
import org.apache.spark.{Partition, SparkContext, TaskContext}

/**
 * An [[AsOfOperator]] whose versions are broadcast: each task joins a partition of the spine, which is
 * not shuffled, with the versions of its keys.
 */
case class BroadcastAsOfJoinExec(
    children: Seq[SparkPlan],
    keys: Seq[Seq[Expression]],
    times: Seq[Expression],
    matches: Seq[AsOfMatch],
    ties: Seq[Seq[SortOrder]],
    within: Seq[Seq[Expression]],
    inner: Boolean)
    extends AsOfOperator {

  override def nodeName: String = "BroadcastAsOfJoin"

  override def requiredChildDistribution: Seq[Distribution] =
    UnspecifiedDistribution +: children.tail.map(_ => BroadcastDistribution(IdentityBroadcastMode))

  /**
   * That of the spine. Spark would apply the partition values of a storage-partitioned join above to
   * each scan below, those of versions included.
   */
  override def outputPartitioning: Partitioning = {
    val ofSpine = children.head.outputPartitioning
    PartitionValues.columns(ofSpine) match {
      case None => ofSpine
      // Not if several partitions have one value.
      case Some(columns) if ofSpine.satisfies(ClusteredDistribution(columns)) =>
        KeysTogether(columns, ofSpine.numPartitions)
      case _ => UnknownPartitioning(ofSpine.numPartitions)
    }
  }

  override lazy val metrics: Map[String, SQLMetric] = operatorMetrics

  // Each task would sort all versions.
  override protected def avoidsSorts: Boolean = false

  override protected def inputRows: Seq[RDD[InternalRow]] = {
    val spine = children.head.execute()
    spine +: children.tail.map { child =>
      new BroadcastRows(
        sparkContext,
        child.executeBroadcast[Array[InternalRow]](),
        spine.getNumPartitions)
    }
  }

  override protected def isRead(input: Int): Boolean = false

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): BroadcastAsOfJoinExec = copy(children = newChildren)
}

/** The same rows in each partition. */
private final class BroadcastRows(
    sc: SparkContext,
    rows: Broadcast[Array[InternalRow]],
    numPartitions: Int)
    extends RDD[InternalRow](sc, Nil) {

  override protected def getPartitions: Array[Partition] = Array.tabulate(numPartitions) { i =>
    new Partition { override val index: Int = i }
  }

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] =
    rows.value.iterator
}
