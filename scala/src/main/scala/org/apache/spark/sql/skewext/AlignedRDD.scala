package org.apache.spark.sql.skewext

import org.apache.spark.rdd.{DeterministicLevel, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.{NarrowDependency, Partition, TaskContext}

/**
 * The partitions of another RDD in another order, with empty ones between them. Lives here because
 * the deterministic level of the other RDD, which it inherits, is `private[spark]`.
 *
 * @param from the partition of the other RDD for each partition; None for an empty one
 */
class AlignedRDD(rows: RDD[InternalRow], @transient private val from: Array[Option[Int]])
    extends RDD[InternalRow](
      rows.context,
      Seq(new NarrowDependency(rows) {
        override def getParents(partition: Int): Seq[Int] = from(partition).toSeq
      })) {

  override protected def getPartitions: Array[Partition] = {
    val parents = firstParent[InternalRow].partitions
    Array.tabulate(from.length)(i => AlignedPartition(i, from(i).map(parents(_))))
  }

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] =
    split
      .asInstanceOf[AlignedPartition]
      .parent
      .fold(Iterator.empty: Iterator[InternalRow])(firstParent[InternalRow].iterator(_, context))

  override protected def getOutputDeterministicLevel: DeterministicLevel.Value =
    firstParent[InternalRow].outputDeterministicLevel
}

private case class AlignedPartition(index: Int, parent: Option[Partition]) extends Partition
