package io.github.skewext.bucket.files

import scala.annotation.tailrec

import io.github.skewext.join.exec.grouping.{KeyOrder, RowCursor}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{FilePartition, FileScanRDD, PartitionedFile}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.DataType
import org.apache.spark.{OneToOneDependency, Partition, TaskContext}

/**
 * The merged rows of each partition's files. It computes the parent for one file after the other.
 * The partitions of a `FileScanRDD`, and of RDDs over it, are lists of files, so that a partition
 * with one file is computed like one with several.
 *
 * @param description the order of the files, for the error if a file is not sorted
 */
private[skewext] class SortedFilesRDD(
    parent: RDD[InternalRow],
    types: Array[DataType],
    order: KeyOrder,
    description: String,
    numRows: SQLMetric,
    numFiles: SQLMetric)
    extends RDD[InternalRow](parent) {

  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val FilePartition(index, files) = split
    val opened = files.map { file =>
      val rows = firstParent[InternalRow].iterator(FilePartition(index, Array(file)), context)
      new RowFileCursor(rows, order, types, notSorted(file)): RowCursor
    }
    numFiles += files.length
    new MergedCursor(opened, order, numRows).rows
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
