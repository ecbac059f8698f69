package io.github.skewext.execution.files

import io.github.skewext.execution.grouping.{BatchRowMaker, ColumnOrder, RowCursor}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * The rows of one file that come as batches of columns, and a check that they are in order. For all
 * rows of a batch the prefixes of their keys are taken at once; rows themselves are made only when
 * somebody asks for them, or when two prefixes are equal and do not say which key is the lower one.
 *
 * It begins before the first row.
 *
 * @param maker makes rows of this file alone
 * @param wanted chooses rows of a batch
 */
private[skewext] final class BatchFileCursor(
    batches: Iterator[ColumnarBatch],
    maker: BatchRowMaker,
    wanted: BatchFilter,
    order: ColumnOrder,
    notSorted: () => Exception)
    extends RowCursor {

  prefix = Long.MinValue

  private[this] var prefixes = new Array[Long](0)

  /** Which of the batch's rows are wanted; the first `count` are. */
  private[this] var positions = new Array[Int](0)
  private[this] var count = 0
  private[this] var at = -1

  /** Where the current row is made, and where the one before it was. */
  private[this] var place = new BatchRowMaker.Place(maker.numColumns)
  private[this] var otherPlace = new BatchRowMaker.Place(maker.numColumns)

  /** The current row, if it has been made. */
  private[this] var made: UnsafeRow = _

  override def row: UnsafeRow = {
    if (made == null) made = maker.make(positions(at), place)
    made
  }

  override def advance(): Unit = {
    val prefixBefore = prefix
    // When the next batch is read, this one's columns are gone.
    val mayEqual = live && !order.saysAll(prefix) &&
      (at + 1 == count || prefixes(at + 1) == prefixBefore)
    val before = if (mayEqual) row else null
    made = null
    at += 1
    live = at < count || openNext()
    if (live) {
      prefix = prefixes(at)
      if (before != null && prefix == prefixBefore) {
        val last = place
        place = otherPlace
        otherPlace = last
        if (order.compare(0, before, 0, row) > 0) throw notSorted()
      }
    }
  }

  /** Goes to the first row of the next batch that has one. */
  private def openNext(): Boolean = {
    at = 0
    count = 0
    while (count == 0 && batches.hasNext) open(batches.next())
    count > 0
  }

  private def open(batch: ColumnarBatch): Unit = {
    val size = batch.numRows
    if (positions.length < size) {
      positions = new Array[Int](size)
      prefixes = new Array[Long](size)
    }
    maker.open(batch)
    count = wanted.choose(batch, positions)
    var before = prefix
    var i = 0
    while (i < count) {
      val next = order.prefix(0, maker, positions(i))
      if (next < before) throw notSorted()
      prefixes(i) = next
      before = next
      i += 1
    }
  }
}
