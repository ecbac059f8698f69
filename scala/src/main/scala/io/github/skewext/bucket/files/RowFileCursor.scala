package io.github.skewext.bucket.files

import io.github.skewext.rows.{KeyOrder, RowCursor, UnsafeInputs}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.DataType

/** The rows of one file, with a check of their order. It starts before the first row. */
private[skewext] final class RowFileCursor(
    rows: Iterator[InternalRow],
    order: KeyOrder,
    types: Array[DataType],
    notSorted: () => Exception)
    extends RowCursor {

  var row: UnsafeRow = _
  prefix = Long.MinValue

  /** The row before the current one, if its prefix does not determine the key. */
  private[this] val before = UnsafeRow.createFromByteArray(0, types.length)
  private[this] val asUnsafe = new UnsafeInputs(Seq(types.toSeq))

  override def advance(): Unit = {
    val prefixBefore = prefix
    val compares = live && !order.saysAll(prefix)
    // The next row may use the same memory.
    if (compares) before.copyFrom(row)
    live = rows.hasNext
    if (live) {
      row = asUnsafe(0, rows.next())
      prefix = order.prefix(0, row)
      if (prefix < prefixBefore ||
        (compares && prefix == prefixBefore && order.compare(0, before, 0, row) > 0)) {
        throw notSorted()
      }
    }
  }
}
