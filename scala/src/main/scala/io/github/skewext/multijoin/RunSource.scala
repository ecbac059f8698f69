package io.github.skewext.multijoin

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterIterator

/**
 * The rows of one input in ascending order of their keys' hashes, one row at a time. `row` is valid
 * until the next `advance()`.
 */
private[multijoin] abstract class RunSource {

  /** Whether there is a current row. */
  var live: Boolean = false
  var hash: Long = 0L
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

  /** Rows that share one hash. */
  def sameHash(rows: Iterator[UnsafeRow], sharedHash: Long, numFields: Int): RunSource =
    new RunSource {
      override val row: UnsafeRow = new UnsafeRow(numFields)
      hash = sharedHash

      override def advance(): Unit = {
        live = rows.hasNext
        if (live) {
          val next = rows.next()
          row.pointTo(next.getBaseObject, next.getBaseOffset, next.getSizeInBytes)
        }
      }

      advance()
    }
}
