package io.github.skewext.bucket.files

import io.github.skewext.facts.KeepsStableRows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec, ShufflePartitionSpec, SparkPlan, UnaryExecNode}
import org.apache.spark.{NarrowDependency, Partition, TaskContext}

/**
 * Reads the buckets of a table with tasks that may share a bucket. A task reads whole buckets or a
 * slice of one. The nodes below run on the files of each slice.
 *
 * @param specs the read of each task, as for shuffles, with a bucket in place of a partition
 * @param ranges the file ranges of sliced buckets, from which slices and the reads of marking tasks
 *               are built
 */
private[skewext] case class SlicedBucketsExec(
    specs: Seq[ShufflePartitionSpec],
    ranges: Map[Int, Seq[FileRange]],
    child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = UnknownPartitioning(specs.size)

  /** A slice is read in the order of its file. */
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] =
    new SlicedFilesRDD(child.execute(), specs, ranges)

  override def simpleString(maxFields: Int): String = {
    val slices = specs.collect { case part: PartialReducerPartitionSpec => part.reducerIndex }
    val sliced = slices match {
      case Nil => ""
      case of => s", ${of.size} of them with slices of ${of.distinct.size}"
    }
    s"$nodeName ${child.outputPartitioning.numPartitions} buckets, ${specs.size} tasks$sliced"
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SlicedBucketsExec =
    copy(child = newChild)
}

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

/**
 * A file, or row groups of it.
 *
 * @param path the path as in the partitions of a scan.
 * @param fileBytes the length of the whole file.
 * @param bytes the number of bytes to read.
 */
private[skewext] case class FileRange(
    path: String,
    start: Long,
    length: Long,
    fileBytes: Long,
    bytes: Long)

private[skewext] object FileRange {

  /**
   * Returns the parts of a scan's files in the ranges from `from` until `until`. The ranges of a
   * file are adjacent. Each file is read once if each range is selected once, even if files have
   * changed meanwhile: a file that has changed belongs to the first range, as a whole.
   */
  def select(
      files: Array[PartitionedFile],
      ranges: Seq[FileRange],
      from: Int,
      until: Int): Array[PartitionedFile] = {
    val byPath = ranges.zipWithIndex.groupBy(_._1.path)
    files.flatMap { file =>
      byPath.get(file.urlEncodedPath) match {
        case Some(own) if file.start == 0 && own.forall(_._1.fileBytes == file.length) =>
          val selected = own.collect { case (range, i) if i >= from && i < until => range }
          if (selected.isEmpty) None
          else Some(file.copy(start = selected.head.start, length = selected.map(_.length).sum))
        case _ => if (from == 0) Some(file) else None
      }
    }
  }
}
