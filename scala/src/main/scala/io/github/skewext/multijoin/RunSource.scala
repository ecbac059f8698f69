package io.github.skewext.multijoin

import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterIterator

/**
 * The ordered rows of one input, one row at a time. `row` is valid until the next `advance()`.
 */
private[multijoin] abstract class RunSource {

  /** Whether there is a current row. */
  var live: Boolean = false

  /** The hash of the row's key, where rows are ordered by it. */
  var hash: Long = 0L

  /** Whether all rows are of one run. */
  def oneRun: Boolean = false

  val row: UnsafeRow

  def advance(): Unit
}

private[multijoin] object RunSource {

  val empty: RunSource = new RunSource {
    override val row: UnsafeRow = null
    override def advance(): Unit = ()
  }

  /** Sorted records, the hash of the key as their prefix. */
  def sorted(records: UnsafeSorterIterator, numFields: Int): RunSource = new RunSource {
    override val row: UnsafeRow = new UnsafeRow(numFields)

    override def advance(): Unit = {
      live = records.hasNext
      if (live) {
        records.loadNext()
        hash = records.getKeyPrefix
        row.pointTo(records.getBaseObject, records.getBaseOffset, records.getRecordLength)
      }
    }

    advance()
  }

  /** Rows of one run. */
  def sameRun(rows: Iterator[UnsafeRow], numFields: Int): RunSource = new RunSource {
    override val row: UnsafeRow = new UnsafeRow(numFields)
    override def oneRun: Boolean = true

    override def advance(): Unit = {
      live = rows.hasNext
      if (live) pointTo(row, rows.next())
    }

    advance()
  }

  /** Rows in the order of their keys; knows the key of its row. */
  final class Ordered(rows: Iterator[UnsafeRow], numFields: Int, keyOf: UnsafeProjection)
      extends RunSource {
    override val row: UnsafeRow = new UnsafeRow(numFields)
    var key: UnsafeRow = _

    override def advance(): Unit = {
      live = rows.hasNext
      if (live) {
        pointTo(row, rows.next())
        key = keyOf(row)
      }
    }

    advance()
  }

  private def pointTo(row: UnsafeRow, other: UnsafeRow): Unit =
    row.pointTo(other.getBaseObject, other.getBaseOffset, other.getSizeInBytes)
}
