package io.github.skewext.bucket

import io.github.skewext.multijoin.{BatchScan, ColumnOrder, KeyOrder, RunSource}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Makes runs of what is read of sorted files. */
private[bucket] trait SortedRuns[T] extends Serializable {

  /** For the files of one task: from what is read, and the error if it is not in order. */
  def forTask(): (Iterator[T], () => Exception) => RunSource
}

/** Of rows, whatever makes them. */
private[bucket] case class RowRuns(order: KeyOrder, types: Array[DataType])
    extends SortedRuns[InternalRow] {

  override def forTask(): (Iterator[InternalRow], () => Exception) => RunSource =
    (rows, notSorted) => new SortedRun(rows, order, types, notSorted)
}

/** Of a scan's columns. */
private[bucket] case class BatchRuns(
    order: ColumnOrder,
    columns: BatchScan.Columns,
    wanted: WantedRows)
    extends SortedRuns[ColumnarBatch] {

  override def forTask(): (Iterator[ColumnarBatch], () => Exception) => RunSource =
    (batches, notSorted) => new BatchRun(batches, columns.rowMaker(), wanted, order, notSorted)
}
