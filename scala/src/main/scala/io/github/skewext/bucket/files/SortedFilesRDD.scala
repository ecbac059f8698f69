package io.github.skewext.bucket.files

import scala.annotation.tailrec

import io.github.skewext.rows.{KeyOrder, RowCursor, UnsafeInputs}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.UnsafeExternalRowSorter
import org.apache.spark.sql.execution.datasources.{FilePartition, FileScanRDD, PartitionedFile}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.sql.types.{DataType, StructField, StructType}
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators
import org.apache.spark.{BarrierTaskContext, OneToOneDependency, Partition, TaskContext}

/**
 * The merged rows of each partition's files. It computes the parent for one file after the other.
 * The partitions of a `FileScanRDD`, and of RDDs over it, are lists of files, so that a partition
 * with one file is computed like one with several.
 *
 * Files may not be in order although Spark wrote them: if a sort column is constant, Spark does not
 * see that a query sorts the next one in descending order or with nulls last. The first attempt of
 * a task fails then, and later ones sort the partition's rows. Spark discards the rows of the first.
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
    numFiles += files.length
    val ownOrder = order.own
    // A failed barrier stage begins with first attempts again. Other stages that begin again compute
    // lost partitions, and must return the same rows in the same order.
    val isFailedBarrier =
      context.isInstanceOf[BarrierTaskContext] && context.stageAttemptNumber() > 0
    if (context.attemptNumber() == 0 && !isFailedBarrier) {
      val opened = files.map { file =>
        val rows = firstParent[InternalRow].iterator(FilePartition(index, Array(file)), context)
        new RowFileCursor(rows, ownOrder, types, notSorted(file)): RowCursor
      }
      new MergedCursor(opened, ownOrder, numRows).rows
    } else {
      sorted(firstParent[InternalRow].iterator(split, context), ownOrder, context)
    }
  }

  /** The rows in the same order, by Spark's external sorter. */
  private def sorted(
      rows: Iterator[InternalRow],
      order: KeyOrder,
      context: TaskContext): Iterator[InternalRow] = {
    val asUnsafe = new UnsafeInputs(Seq(types.toSeq))
    val prefixes = new UnsafeExternalRowSorter.PrefixComputer {
      private[this] val result = new UnsafeExternalRowSorter.PrefixComputer.Prefix
      override def computePrefix(
          row: InternalRow): UnsafeExternalRowSorter.PrefixComputer.Prefix = {
        result.value = order.prefix(0, asUnsafe(0, row))
        result
      }
    }
    val sorter = UnsafeExternalRowSorter.create(
      StructType(types.map(StructField("", _))),
      (a: InternalRow, b: InternalRow) => order.compare(0, asUnsafe(0, a), 0, asUnsafe(0, b)),
      PrefixComparators.LONG,
      prefixes,
      TaskInternals.memory(context).pageSizeBytes,
      false)
    sorter.sort(rows.map(asUnsafe(0, _))).map { row =>
      numRows += 1
      row
    }
  }

  private def notSorted(file: PartitionedFile): () => Exception = () =>
    new IllegalStateException(
      s"The rows of ${file.urlEncodedPath} are not in order, although $description. The next " +
        "attempt of the task sorts them. If there is none, as in local mode, read the table with " +
        "spark.skewext.bucket.merge.enabled=false, or write it anew.")
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
