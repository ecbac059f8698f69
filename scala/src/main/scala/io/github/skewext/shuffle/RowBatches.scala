package io.github.skewext.shuffle

import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.unsafe.Platform

/**
 * Collects some `UnsafeRow`s at a time, so that loops over one column after the other append them
 * to a [[PartitionedColumnBuffer]]. The rows of a batch are copied to one page, which stays in the
 * processor's cache. A larger row is a batch of its own, and is not copied.
 *
 * There is one batch object, valid until the next is requested.
 */
private final class RowBatches(rows: Iterator[InternalRow], types: Seq[DataType])
    extends Iterator[ColumnarBatch] {

  private[this] val numFields = types.size
  private[this] val nullBytes = UnsafeRow.calculateBitSetWidthInBytes(numFields)
  private[this] val page = new Array[Byte](RowBatches.PageSize)
  private[this] val nullWords = new Array[Long](nullBytes / 8)
  private[this] val sizes = new Array[Int](RowBatches.MostRows)
  private[this] val row = new UnsafeRow(numFields)

  /** The object with the rows, and where in it each begins. */
  private[shuffle] var base: AnyRef = page
  private[shuffle] val offsets = new Array[Long](RowBatches.MostRows)

  private[this] val columns: Array[ColumnVector] =
    types.zipWithIndex.map { case (t, i) => new RowColumn(this, i, nullBytes, t) }.toArray
  private[this] val batch = new ColumnarBatch(columns) {
    override def getRow(i: Int): InternalRow = rowAt(i)
  }

  // A row that did not fit on the page. The iterator overwrites it when it looks for the next row.
  private[this] var pending: UnsafeRow = _

  private[shuffle] def hasNull(column: Int): Boolean =
    (nullWords(column >> 6) >>> (column & 63) & 1) != 0

  private[shuffle] def rowAt(i: Int): UnsafeRow = {
    row.pointTo(base, offsets(i), sizes(i))
    row
  }

  override def hasNext: Boolean = pending != null || rows.hasNext

  override def next(): ColumnarBatch = {
    if (!hasNext) throw new NoSuchElementException
    Arrays.fill(nullWords, 0L)
    base = page
    var count = 0
    var used = 0
    while (count < RowBatches.MostRows && hasNext) {
      val from = if (pending != null) pending else rows.next().asInstanceOf[UnsafeRow]
      val size = from.getSizeInBytes
      pending = null
      if (size <= page.length - used) {
        val at = Platform.BYTE_ARRAY_OFFSET.toLong + used
        RowBytes.copy(from.getBaseObject, from.getBaseOffset, page, at, size)
        noteRow(count, at, size)
        count += 1
        used += size
      } else if (count == 0) {
        base = from.getBaseObject
        noteRow(0, from.getBaseOffset, size)
        batch.setNumRows(1)
        return batch
      } else {
        pending = from
        batch.setNumRows(count)
        return batch
      }
    }
    batch.setNumRows(count)
    batch
  }

  private def noteRow(i: Int, offset: Long, size: Int): Unit = {
    offsets(i) = offset
    sizes(i) = size
    var w = 0
    while (w < nullWords.length) {
      nullWords(w) |= Platform.getLong(base, offset + 8 * w)
      w += 1
    }
  }
}

private object RowBatches {
  private val MostRows = 256
  private val PageSize = 64 << 10
}
