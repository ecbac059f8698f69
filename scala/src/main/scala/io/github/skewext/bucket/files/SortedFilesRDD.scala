package io.github.skewext.bucket.files

import scala.annotation.tailrec

import io.github.skewext.rows.{KeyOrder, UnsafeInputs}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.datasources.{FilePartition, FileScanRDD, PartitionedFile}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.{RowIterator, UnsafeExternalRowSorter}
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.sql.types.{DataType, StructField, StructType}
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators
import org.apache.spark.{BarrierTaskContext, OneToOneDependency, Partition, TaskContext}

/**
 * The rows of each partition's file, in order. The partitions of a `FileScanRDD`, and of RDDs over
 * it, are lists of files.
 *
 * Files may not be in order although Spark wrote them: if a sort column is constant, Spark does not
 * see that a query sorts the next one in descending order or with nulls last. The first attempt of
 * a task fails then, and later ones sort the partition's rows. Spark discards the rows of the first.
 * Rows of several files are sorted, too: files may be added after the query was planned.
 *
 * @param description the order of the files, for the error if a file is not sorted
 */
private[skewext] class SortedFilesRDD(
    parent: RDD[InternalRow],
    types: Array[DataType],
    order: KeyOrder,
    description: String,
    numRows: SQLMetric)
    extends RDD[InternalRow](parent) {

  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val FilePartition(_, files) = split
    val rows = firstParent[InternalRow].iterator(split, context)
    // A failed barrier stage begins with first attempts again. Other stages that begin again compute
    // lost partitions, and must return the same rows in the same order.
    val isFailedBarrier =
      context.isInstanceOf[BarrierTaskContext] && context.stageAttemptNumber() > 0
    val isFirst = context.attemptNumber() == 0 && !isFailedBarrier
    if (isFirst && files.length <= 1) checked(rows, order.own, notSorted(files.head))
    else sorted(rows, order.own, context)
  }

  /** The rows, compared with the row before each. */
  private def checked(
      rows: Iterator[InternalRow],
      order: KeyOrder,
      notSorted: => Exception): Iterator[InternalRow] = new RowIterator {
    private[this] val asUnsafe = new UnsafeInputs(Seq(types.toSeq))
    private[this] var row: UnsafeRow = _
    private[this] var prefix = Long.MinValue

    /** The row before the current one, if its prefix does not determine the key. */
    private[this] val before = UnsafeRow.createFromByteArray(0, types.length)

    override def getRow: InternalRow = row

    override def advanceNext(): Boolean = {
      val prefixBefore = prefix
      val compares = row != null && !order.saysAll(prefix)
      // The next row may use the same memory.
      if (compares) before.copyFrom(row)
      val hasNext = rows.hasNext
      if (hasNext) {
        row = asUnsafe(0, rows.next())
        prefix = order.prefix(0, row)
        if (prefix < prefixBefore ||
          (compares && prefix == prefixBefore && order.compare(0, before, 0, row) > 0)) {
          throw notSorted
        }
        numRows += 1
      }
      hasNext
    }
  }.toScala

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

  private def notSorted(file: PartitionedFile): Exception =
    new IllegalStateException(
      s"The rows of ${file.urlEncodedPath} are not in order, although $description. The next " +
        "attempt of the task sorts them. If there is none, as in local mode, read the table with " +
        "spark.skewext.bucket.order.enabled=false, or write it anew.")
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
