package io.github.skewext.execution.files

import scala.annotation.tailrec
import scala.reflect.ClassTag

import io.github.skewext.execution.grouping.KeyOrder

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{FilePartition, FileScanRDD, PartitionedFile}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.{OneToOneDependency, Partition, TaskContext}

/**
 * The rows of each partition's files, merged. The parent is asked for one file after the other: the
 * partitions of a `FileScanRDD` are lists of files, and those of RDDs over it are the same, so
 * that a partition with one file is computed as one with several is.
 *
 * @param runs makes a run of what the parent gives of a file
 * @param description how files are sorted, for the error if one is not
 */
private[skewext] class SortedFilesRDD[T: ClassTag](
    parent: RDD[T],
    runs: FileCursors[T],
    order: KeyOrder,
    description: String,
    numRows: SQLMetric,
    numFiles: SQLMetric)
    extends RDD[InternalRow](parent) {

  override protected def getPartitions: Array[Partition] = firstParent[T].partitions

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val FilePartition(index, files) = split
    val runOf = runs.forTask()
    val opened = files.map { file =>
      runOf(firstParent[T].iterator(FilePartition(index, Array(file)), context), notSorted(file))
    }
    numFiles += files.length
    new MergedRowIterator(new MergedCursor(opened, order, numRows), order)
  }

  private def notSorted(file: PartitionedFile): () => Exception = () =>
    new IllegalStateException(
      s"The rows of ${file.urlEncodedPath} are not in order, although $description. Spark can read " +
        "the table as it is with spark.skewext.bucket.merge.enabled=false; a table that is written " +
        "anew is sorted again.")
}

private[skewext] object SortedFilesRDD {

  /** Whether partitions are lists of files that the RDD computes one by one. */
  def canRead(rows: RDD[_]): Boolean =
    isOverFiles(rows) && rows.partitions.forall(_.isInstanceOf[FilePartition])

  @tailrec
  private def isOverFiles(rdd: RDD[_]): Boolean = rdd match {
    case _: FileScanRDD => true
    case other =>
      other.dependencies match {
        case Seq(one: OneToOneDependency[_]) => isOverFiles(one.rdd)
        case _ => false
      }
  }
}
