package io.github.skewext.execution.files

import org.apache.spark.sql.catalyst.InternalRow

/** The rows of a source that begins before its first row. */
private[skewext] final class MergedRowIterator(source: MergedCursor) extends Iterator[InternalRow] {

  /** Whether the source stands at a row that has not been given away. */
  private[this] var isAtNext = false

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
