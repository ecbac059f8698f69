package io.github.skewext.bucket.files

import org.apache.spark.sql.catalyst.InternalRow

/** The rows of a cursor that starts before its first row. */
private[skewext] final class MergedRowIterator(source: MergedCursor) extends Iterator[InternalRow] {

  /** Whether the cursor is at a row that `next` has not returned. */
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
