package io.github.skewext.bucket

import io.github.skewext.multijoin.{KeyOrder, SortedRows}

import org.apache.spark.sql.catalyst.InternalRow

/** The rows of a source that begins before its first row. */
private[bucket] final class MergedRows(
    override val source: MergedRuns,
    override val order: KeyOrder)
    extends SortedRows {

  /** Whether the source stands at a row that has not been given away. */
  private[this] var isAtNext = false

  override def numRead: Long = source.numRead

  override def hasNext: Boolean = {
    if (!isAtNext) {
      source.advance()
      isAtNext = true
    }
    source.live
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    isAtNext = false
    source.row
  }
}
