package io.github.skewext.join.exec

import io.github.skewext.facts.KeepsStableRows

import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.execution._
import org.apache.spark.sql.skewext.{KeyedPartitions, PartitionValues}
import org.apache.spark.sql.types.{DataType, IntegerType}

/**
 * Arranges the partitions that a table has in its storage in the order of values that all inputs of
 * a join have in common. A value that the table lacks becomes an empty partition. So the inputs of
 * a storage-partitioned join are co-partitioned without a shuffle.
 *
 * Spark itself pushes the common values into scans. It supports joins of two inputs only, and would
 * push the values of other joins through this one. Here scans do not change, unless the join is
 * split: then tasks may share the files of a value.
 *
 * @param values the partition values, one for each partition.
 * @param positions the positions of the partitioning columns among the join's keys.
 * @param columns the keys at these positions, as columns of this input.
 * @param by the partitioning as shown in the plan.
 * @param specs the read of each task, as for shuffles, with a value in place of a partition, and a
 *              split of the scan in place of a map task; none if each task reads a value.
 * @param bySplit whether the rows below have a partition for each split. If not, they have one for
 *                each value.
 */
case class AlignPartitionsExec(
    // Not serializable, and an operator above may send its plan to the tasks, with all nodes below
    // it.
    @transient values: Seq[InternalRowComparableWrapper],
    positions: Seq[Int],
    columns: Seq[Expression],
    by: String,
    child: SparkPlan,
    specs: Seq[ShufflePartitionSpec] = Nil,
    bySplit: Boolean = false)
    extends UnaryExecNode
    with KeepsStableRows {

  override def output: Seq[Attribute] = child.output

  override def passesColumns: Boolean = true

  override def outputPartitioning: Partitioning =
    if (specs.isEmpty) KeysTogether(columns, values.size) else UnknownPartitioning(specs.size)

  /** The types of a partition value. */
  def types: Seq[DataType] = values.headOption.map(_.dataTypes).getOrElse(Nil)

  /**
   * The same rows, read by tasks that may share a value.
   *
   * @param sliceable whether the rows below may be computed split by split.
   */
  def reading(specs: Seq[ShufflePartitionSpec], sliceable: Boolean): AlignPartitionsExec = {
    val sliced = if (sliceable) KeyedPartitions.bySplit(child) else None
    copy(specs = specs, child = sliced.getOrElse(child), bySplit = sliced.isDefined)
  }

  override protected def doExecute(): RDD[InternalRow] = {
    val present =
      if (bySplit) KeyedPartitions.ofSplits(child, types)
      else PartitionValues.of(child).map(_.values).getOrElse(Nil)
    val rows = child.execute()
    // If a runtime filter removed a value, the scan has an empty partition for it. With any other
    // difference, rows would remain without a join.
    if (present.size != rows.getNumPartitions || !present.forall(values.toSet)) {
      throw new IllegalStateException(
        s"The partitions of ${child.simpleStringWithNodeId()} are not those that the join was " +
          s"planned for (${rows.getNumPartitions}, not ${present.size}). " +
          "spark.sql.sources.v2.bucketing.enabled=false shuffles its rows.")
    }
    // From Spark 4.2 on, files of one value may be several partitions.
    val partitionsOf =
      present.zipWithIndex.groupBy(_._1).map { case (value, all) => value -> all.map(_._2) }
    val ofValues = values.map(partitionsOf.getOrElse(_, Nil))
    val from = if (specs.isEmpty) ofValues else specs.map(readIn(ofValues, _))
    // Spark's method makes no RDD without partitions.
    if (from.isEmpty) rows else rows.coalesce(from.size, shuffle = false, Some(Arranged(from)))
  }

  private def readIn(ofValues: Seq[Seq[Int]], spec: ShufflePartitionSpec): Seq[Int] = spec match {
    case PartialReducerPartitionSpec(value, start, end, _) => ofValues(value).slice(start, end)
    case CoalescedPartitionSpec(start, end, _) => ofValues.slice(start, end).flatten
    case other => throw new IllegalStateException(s"Partition values are not read as $other.")
  }

  override def simpleString(maxFields: Int): String = {
    val split = if (specs.isEmpty) "" else s" in ${specs.size} tasks"
    s"$nodeName $by, ${values.size} partitions$split"
  }

  override protected def withNewChildInternal(newChild: SparkPlan): AlignPartitionsExec =
    copy(child = newChild)
}

/**
 * Puts partitions in another order, with empty ones between them.
 *
 * @param from the former places of each partition; none for an empty one
 */
private case class Arranged(from: Seq[Seq[Int]]) extends PartitionCoalescer {
  override def coalesce(most: Int, parent: RDD[_]): Array[PartitionGroup] =
    from.map { places =>
      val group = new PartitionGroup
      group.partitions ++= places.map(parent.partitions(_))
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
