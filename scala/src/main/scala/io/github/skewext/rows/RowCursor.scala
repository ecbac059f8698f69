package io.github.skewext.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterIterator

/** A cursor over the sorted rows of one input. `row` is valid until the next `advance()`. */
private[skewext] abstract class RowCursor {

  /** Whether the cursor is at a row; false after the last one. */
  var live: Boolean = false

  /** The sort prefix of the current row: the hash of its key, or its prefix in a [[KeyOrder]]. */
  var prefix: Long = 0L

  /** Whether all rows have one hash (a run, see [[HashSortedGroups]]). Then `prefix` is not set. */
  def oneRun: Boolean = false

  def row: UnsafeRow

  def advance(): Unit
}

private[skewext] object RowCursor {

  val empty: RowCursor = new RowCursor {
    override def row: UnsafeRow = null
    override def advance(): Unit = ()
  }

  /** A cursor over sorted records whose prefix is the hash of the key. */
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

  /** A cursor over the rows of one run. */
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
   * A cursor over an input that is already sorted by key. It converts rows to `UnsafeRow`s, counts
   * them, and fails if a prefix is lower than the one before.
   */
  final class Ordered(
      input: Int,
      rows: Iterator[InternalRow],
      asUnsafe: UnsafeInputs,
      order: KeyOrder)
      extends RowCursor {
    var row: UnsafeRow = _

    /** Number of rows read so far. */
    var numRows: Long = 0L

    override def advance(): Unit = {
      live = rows.hasNext
      if (live) {
        row = asUnsafe(input, rows.next())
        numRows += 1
        val before = prefix
        prefix = order.prefix(input, row)
        if (prefix < before) throw RowCursor.notInOrder(input)
      }
    }

    prefix = Long.MinValue
    advance()
  }

  /** Metadata can be wrong, and merging unsorted rows would return a wrong answer. */
  private def notInOrder(input: Int): Exception =
    new IllegalStateException(
      s"Input $input of the join is not in the order that its plan says. If it is a bucketed " +
        "table, its files are not sorted as its metadata says. Write it anew, or set " +
        s"${SQLConf.LEGACY_BUCKETED_TABLE_SCAN_OUTPUT_ORDERING.key} to false.")
}
