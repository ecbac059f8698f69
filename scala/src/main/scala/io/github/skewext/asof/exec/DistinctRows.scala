package io.github.skewext.asof.exec

import io.github.skewext.rows.{KeyOrder, RowCursor}

import org.apache.spark.sql.catalyst.expressions.{RowOrdering, SortOrder, UnsafeRow}
import org.apache.spark.unsafe.types.ByteArray

/**
 * Of sorted rows, one row of each run of rows that are equal in `order`: the one that counts.
 *
 * @param ties the order in which the first of equal rows counts, see [[TieOrder]].
 */
private[skewext] final class DistinctRows(
    input: Int,
    rows: RowCursor,
    order: KeyOrder,
    ties: Seq[SortOrder],
    numFields: Int) {

  private[this] val tieOrder = new TieOrder(ties)

  /** The prefix of the row that `read` has returned. */
  var prefix: Long = 0L

  /**
   * A copy of the next row, or null after the last one.
   *
   * @param into a row of a former call whose memory is used again, or null.
   */
  def read(into: UnsafeRow): UnsafeRow = {
    if (!rows.live) {
      null
    } else {
      val first = if (into == null) UnsafeRow.createFromByteArray(0, numFields) else into
      first.copyFrom(rows.row)
      prefix = rows.prefix
      rows.advance()
      while (rows.live && rows.prefix == prefix && isEqual(first)) {
        if (tieOrder.isFirst(rows.row, first)) first.copyFrom(rows.row)
        rows.advance()
      }
      first
    }
  }

  private def isEqual(first: UnsafeRow): Boolean =
    order.compare(input, rows.row, input, first) == 0
}

/**
 * Which of two rows counts: the first one in an order. If the order does not decide, the bytes of the
 * rows do. So a task that runs again selects the same row, in whatever order rows arrive.
 */
private[skewext] final class TieOrder(order: Seq[SortOrder]) {
  private[this] val ordering = RowOrdering.create(order, Nil)

  def isFirst(row: UnsafeRow, other: UnsafeRow): Boolean = {
    val c = ordering.compare(row, other)
    c < 0 || (c == 0 && row != other && ByteArray.compareBinary(row.getBytes, other.getBytes) > 0)
  }
}
