package io.github.skewext.bucket.files

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec, ShufflePartitionSpec}
import org.apache.spark.{NarrowDependency, Partition, TaskContext}

/**
 * Partitions of an RDD over files, some of them several times or in slices. A slice is computed as
 * a partition with some of the files, or with parts of files, see [[SortedFilesRDD]].
 *
 * If the parent is another RDD, because a plugin reads the files, the first slice of a partition is
 * all of it, and the other slices are empty.
 */
private[skewext] class SlicedFilesRDD(
    rows: RDD[InternalRow],
    @transient private val specs: Seq[ShufflePartitionSpec],
    @transient private val ranges: Map[Int, Seq[FileRange]])
    extends RDD[InternalRow](rows.sparkContext, Seq(SlicedFilesRDD.dependency(rows, specs))) {

  override protected def getPartitions: Array[Partition] = {
    val whole = firstParent[InternalRow].partitions
    val divisible = SortedFilesRDD.canRead(firstParent[InternalRow])
    val parts = specs.map {
      case CoalescedPartitionSpec(start, end, _) => whole.slice(start, end).toSeq
      case PartialReducerPartitionSpec(p, from, until, _) =>
        whole(p) match {
          case FilePartition(index, files) if divisible =>
            Seq(FilePartition(index, FileRange.select(files, ranges(p), from, until)))
          case other => if (from == 0) Seq(other) else Nil
        }
      case other => throw new IllegalStateException(s"Buckets are not read as $other.")
    }
    parts.zipWithIndex.map { case (of, i) => SlicedPartition(i, of) }.toArray
  }

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] =
    split.asInstanceOf[SlicedPartition].of match {
      case Seq(one) => firstParent[InternalRow].iterator(one, context)
      case several => several.iterator.flatMap(firstParent[InternalRow].iterator(_, context))
    }

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    split.asInstanceOf[SlicedPartition].of match {
      case Seq(files: FilePartition) => files.preferredLocations().toSeq
      case _ => Nil
    }
}

/** @param of the partitions of the parent */
private case class SlicedPartition(index: Int, of: Seq[Partition]) extends Partition

private object SlicedFilesRDD {
  private def dependency(rows: RDD[InternalRow], specs: Seq[ShufflePartitionSpec]) =
    new NarrowDependency[InternalRow](rows) {
      private val parents = specs.map {
        case PartialReducerPartitionSpec(p, _, _, _) => Seq(p)
        case CoalescedPartitionSpec(start, end, _) => start until end
        case _ => Nil
      }.toIndexedSeq
      override def getParents(partition: Int): Seq[Int] = parents(partition)
    }
}
