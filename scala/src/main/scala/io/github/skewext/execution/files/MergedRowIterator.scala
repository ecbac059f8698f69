package io.github.skewext.execution.files

import io.github.skewext.execution.grouping.{KeyOrder, SortedRowIterator}

import org.apache.spark.sql.catalyst.InternalRow

/** The rows of a source that begins before its first row. */
private[skewext] final class MergedRowIterator(
    override val source: MergedCursor,
    override val order: KeyOrder)
    extends SortedRowIterator {

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
