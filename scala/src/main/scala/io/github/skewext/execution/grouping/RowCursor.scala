package io.github.skewext.execution.grouping

import io.github.skewext.internal.SkewConf

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterIterator

/**
 * The ordered rows of one input, one row at a time. `row` is valid until the next `advance()`.
 */
private[skewext] abstract class RowCursor {

  /** Whether there is a current row. */
  var live: Boolean = false

  /** What rows are ordered by: the hash of the row's key, or the prefix of it in a [[KeyOrder]]. */
  var prefix: Long = 0L

  /** Whether all rows are of one run. */
  def oneRun: Boolean = false

  def row: UnsafeRow

  def advance(): Unit
}

private[skewext] object RowCursor {

  val empty: RowCursor = new RowCursor {
    override def row: UnsafeRow = null
    override def advance(): Unit = ()
  }

  /** Sorted records, the hash of the key as their prefix. */
  def sorted(records: UnsafeSorterIterator, numFields: Int): RowCursor = new RowCursor {
    override val row: UnsafeRow = new UnsafeRow(numFields)

    override def advance(): Unit = {
      live = records.hasNext
      if (live) {
        records.loadNext()
        prefix = records.getKeyPrefix
        row.pointTo(records.getBaseObject, records.getBaseOffset, records.getRecordLength)
      }
    }

    advance()
  }

  /** Rows of one run. */
  def sameRun(rows: Iterator[UnsafeRow]): RowCursor = new RowCursor {
    var row: UnsafeRow = _
    override def oneRun: Boolean = true

    override def advance(): Unit = {
      live = rows.hasNext
      if (live) row = rows.next()
    }

    advance()
  }

  /**
   * The rows of one input as they come, in the order of their keys.
   *
   * @param counts where the rows of each input are counted
   */
  final class Ordered(
      input: Int,
      rows: Iterator[InternalRow],
      asUnsafe: UnsafeInputs,
      order: KeyOrder,
      counts: Array[Long])
      extends RowCursor {
    var row: UnsafeRow = _

    override def advance(): Unit = {
      live = rows.hasNext
      if (live) {
        row = asUnsafe(input, rows.next())
        counts(input) += 1
        val before = prefix
        prefix = order.prefix(input, row)
        if (prefix < before) throw RowCursor.notInOrder(input)
      }
    }

    prefix = Long.MinValue
    advance()
  }

  /** Metadata can be wrong, and rows in another order than expected would be a wrong answer. */
  private def notInOrder(input: Int): Exception =
    new IllegalStateException(
      s"Input $input of the join is not in the order that its plan says. If it is a bucketed " +
        "table, its files are not sorted as its metadata says; " +
        s"${SkewConf.MULTI_JOIN_ORDER.key}=none does not rely on it.")
}
