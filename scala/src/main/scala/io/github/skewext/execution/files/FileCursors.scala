package io.github.skewext.execution.files

import io.github.skewext.execution.grouping.{BatchScan, ColumnOrder, KeyOrder, RowCursor}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Makes runs of what is read of sorted files. */
private[skewext] trait FileCursors[T] extends Serializable {

  /** For the files of one task: from what is read, and the error if it is not in order. */
  def forTask(): (Iterator[T], () => Exception) => RowCursor
}

/** Of rows, whatever makes them. */
private[skewext] case class RowFileCursors(order: KeyOrder, types: Array[DataType])
    extends FileCursors[InternalRow] {

  override def forTask(): (Iterator[InternalRow], () => Exception) => RowCursor =
    (rows, notSorted) => new RowFileCursor(rows, order, types, notSorted)
}

/** Of a scan's columns. */
private[skewext] case class BatchFileCursors(
    order: ColumnOrder,
    columns: BatchScan.Columns,
    wanted: BatchFilter)
    extends FileCursors[ColumnarBatch] {

  override def forTask(): (Iterator[ColumnarBatch], () => Exception) => RowCursor =
    (batches, notSorted) =>
      new BatchFileCursor(batches, columns.rowMaker(), wanted, order, notSorted)
}
