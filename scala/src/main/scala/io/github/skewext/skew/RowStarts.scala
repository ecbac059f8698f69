package io.github.skewext.skew

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** A part of a block, in bytes before compression: begins with a row and ends with one. */
case class RowRange(from: Long, until: Long)

/**
 * Where some of the rows of a block begin, in bytes before compression, so that each task that shares
 * the block can read its own part alone.
 *
 * @param starts of rows, the first of all at 0; none of them far from the next
 * @param end of the last row
 */
case class RowStarts(starts: Array[Long], end: Long) {

  /** One of so many parts of the block, all of about one size. */
  def range(share: Int, shares: Int): RowRange =
    RowRange(startOf(share, shares), startOf(share + 1, shares))

  private def startOf(share: Int, shares: Int): Long =
    if (share == shares) {
      end
    } else {
      val wanted = (end.toDouble * share / shares).toLong
      val found = java.util.Arrays.binarySearch(starts, wanted)
      if (found >= 0) wanted else starts.lift(-found - 1).getOrElse(end)
    }
}

object RowStarts {

  /** How far one start is from the next, or a row more. */
  private val Step = 1L << 18

  /** What a shuffle writes before each row: its size. */
  private val SizeBytes = 4

  /** Takes note of where the rows of a block begin that someone else reads. */
  final class Finder(rows: Iterator[InternalRow]) extends Iterator[InternalRow] {

    private[this] val starts = mutable.ArrayBuilder.make[Long]()
    private[this] var nextStart = 0L
    private[this] var position = 0L

    override def hasNext: Boolean = rows.hasNext

    override def next(): InternalRow = {
      val row = rows.next()
      if (position >= nextStart) {
        starts += position
        nextStart = position + Step
      }
      position += SizeBytes + row.asInstanceOf[UnsafeRow].getSizeInBytes
      row
    }

    /** Reads the rest. */
    def result(): RowStarts = {
      while (hasNext) next()
      RowStarts(starts.result(), position)
    }
  }
}
