package io.github.skewext.join.exec

import io.github.skewext.stable.KeepsStableRows

import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.skewext.PartitionValues
import org.apache.spark.sql.types.{DataType, IntegerType}

/**
 * Arranges the partitions that a table has in its storage in the order of values that all inputs of
 * a join have in common. A value that the table lacks becomes an empty partition. So the inputs of
 * a storage-partitioned join are co-partitioned without a shuffle.
 *
 * Spark itself pushes the common values into scans. It supports joins of two inputs only, and would
 * push the values of other joins through this one. Here scans do not change.
 *
 * @param values the partition values, one for each partition.
 * @param positions the positions of the partitioning columns among the join's keys.
 * @param by the partitioning as shown in the plan.
 */
case class AlignPartitionsExec(
    // Not serializable, and an operator above may send its plan to the tasks, with all nodes below
    // it.
    @transient values: Seq[InternalRowComparableWrapper],
    positions: Seq[Int],
    by: String,
    child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows {

  override def output: Seq[Attribute] = child.output

  override def passesColumns: Boolean = true

  override def outputPartitioning: Partitioning = UnknownPartitioning(values.size)

  override protected def doExecute(): RDD[InternalRow] = {
    val present = PartitionValues.of(child).map(_.values).getOrElse(Nil)
    val rows = child.execute()
    // If a runtime filter removed a value, the scan has an empty partition for it. With any other
    // difference, rows would remain without a join.
    if (present.size != rows.getNumPartitions || !present.forall(values.toSet)) {
      throw new IllegalStateException(
        s"The partitions of ${child.simpleStringWithNodeId()} are not those that the join was " +
          "planned for. spark.sql.sources.v2.bucketing.enabled=false shuffles its rows.")
    }
    val partitionOf = present.zipWithIndex.toMap
    // Spark's method makes no RDD without partitions.
    if (values.isEmpty) rows
    else rows.coalesce(values.size, shuffle = false, Some(Arranged(values.map(partitionOf.get))))
  }

  override def simpleString(maxFields: Int): String =
    s"$nodeName $by, ${values.size} partitions"

  override protected def withNewChildInternal(newChild: SparkPlan): AlignPartitionsExec =
    copy(child = newChild)
}

/**
 * Puts partitions in another order, with empty ones between them.
 *
 * @param from the former place of each partition; None for an empty one
 */
private case class Arranged(from: Seq[Option[Int]]) extends PartitionCoalescer {
  override def coalesce(most: Int, parent: RDD[_]): Array[PartitionGroup] =
    from.map { place =>
      val group = new PartitionGroup
      group.partitions ++= place.map(parent.partitions(_))
      group
    }.toArray
}

/**
 * A partitioning that has rows with equal values of the columns in one partition. It does not
 * define which one, so it is compatible with no other partitioning.
 */
case class KeysTogether(columns: Seq[Expression], numPartitions: Int)
    extends Expression
    with Partitioning
    with Unevaluable {

  override def children: Seq[Expression] = columns
  override def nullable: Boolean = false
  override def dataType: DataType = IntegerType

  override def satisfies0(required: Distribution): Boolean =
    super.satisfies0(required) || (required match {
      case c: ClusteredDistribution if c.requireAllClusterKeys =>
        c.areAllClusterKeysMatched(columns)
      case c: ClusteredDistribution => columns.forall(e => c.clustering.exists(_.semanticEquals(e)))
      case _ => false
    })

  /** The spec of range partitioning, which is compatible with no other. */
  override def createShuffleSpec(distribution: ClusteredDistribution): ShuffleSpec =
    RangeShuffleSpec(numPartitions, distribution)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): KeysTogether = copy(columns = newChildren)
}
