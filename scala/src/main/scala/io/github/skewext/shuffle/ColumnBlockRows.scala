package io.github.skewext.shuffle

import java.io.IOException

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods.roundNumberOfBytesToNearestWord

/**
 * The rows of a [[PartitionedColumnBuffer]] block, with the same bytes as in Spark's own exchange. An
 * invalid block causes an `IOException`, after which Spark runs the task again.
 *
 * {{{
 *   0 ... taken - 1 | taken ... numRows - 1
 *   have been taken | are left: hasNext, next
 * }}}
 * A consumer takes the rows of a block from the front, and another one may take the rest. It takes one
 * row after the other (`next`), leaves out rows (`rowAt`), or reads columns and then says how many rows
 * it has taken (`takeUntil`, `takeAll`). [[ShuffledColumns]] goes on with what is left, and gives a
 * block as a whole only before its first row is taken.
 *
 * @param types the types of the columns
 */
final class ColumnBlockRows(types: Seq[DataType]) {
  private[this] val columns = types.map(new BlockColumn(_)).toArray
  private[this] val numColumns = columns.length
  private[this] val nullBytes = (numColumns + 63) / 64 * 8
  private[this] val fixedBytes = nullBytes + 8 * numColumns

  private[this] var current = 0
  private[this] var buffer = new Array[Byte](fixedBytes + 64)

  // The current size of each row that `copyTo` writes.
  private[this] val ends = new Array[Int](ColumnBlockRows.AtOnce)

  var numRows = 0

  /** The current row, valid until `next`, which overwrites its buffer. */
  val row = new UnsafeRow(numColumns)

  def column(i: Int): BlockColumn = columns(i)

  /** @param size size of the block in bytes; the array has `BitPacking.Slack` more */
  def open(bytes: Array[Byte], size: Int): Unit = {
    current = 0
    numRows = 0
    if (size < 4) throw new IOException("A shuffle block without a number of rows")
    val rows = Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET.toLong)
    if (rows <= 0 || rows > PartitionedColumnBuffer.BlockRows) {
      throw new IOException(s"A shuffle block of $rows rows")
    }
    var at = 4
    var i = 0
    while (i < numColumns) {
      at = columns(i).open(bytes, at, size, rows)
      i += 1
    }
    if (at != size) throw new IOException(s"${size - at} bytes too many in a shuffle block")
    numRows = rows
  }

  /** Whether the strings are so short that no row's size can overflow an Int. */
  def isOfShortRows: Boolean = columns.iterator.map(_.numBytes.toLong).sum < ColumnBlockRows.Short

  /** Number of rows taken from the block. */
  def taken: Int = current

  /** Takes the rows before `row`. */
  def takeUntil(row: Int): Unit = current = row

  def takeAll(): Unit = current = numRows

  /** Takes the rows before `row`, builds that row and takes it. */
  def rowAt(row: Int): UnsafeRow = {
    current = row
    next()
    this.row
  }

  def hasNext: Boolean = current < numRows

  def next(): Unit = {
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    var i = 0
    while (i < nullBytes) {
      Platform.putLong(buffer, at + i, 0L)
      i += 8
    }
    var size = fixedBytes
    i = 0
    while (i < numColumns) {
      val column = columns(i)
      val cell = at + nullBytes + 8 * i
      if (column.hasNulls && column.nulls(current) != 0) {
        val word = at + (i >> 6) * 8
        Platform.putLong(buffer, word, Platform.getLong(buffer, word) | (1L << (i & 63)))
        Platform.putLong(buffer, cell, 0L)
      } else if (column.isBytes) {
        size = putBytes(column, cell, size)
      } else {
        Platform.putLong(buffer, cell, column.words(current))
      }
      i += 1
    }
    row.pointTo(buffer, size)
    current += 1
  }

  /** Writes a string after the row's first `size` bytes. Returns the new size. */
  private def putBytes(column: BlockColumn, cell: Long, size: Int): Int = {
    val length = column.words(current).toInt
    val rounded = roundNumberOfBytesToNearestWord(length)
    if (buffer.length - size < rounded) {
      buffer = java.util.Arrays.copyOf(buffer, RowBytes.grown(Math.addExact(size, rounded)))
    }
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    RowBytes.copyPadded(column.bytes, column.starts(current), buffer, at + size, length)
    Platform.putLong(buffer, cell, (size.toLong << 32) | length)
    size + rounded
  }

  /** Computes the sizes of `count` rows from `from` on, at most `AtOnce`. */
  def sizes(from: Int, count: Int, sizes: Array[Int]): Unit = {
    java.util.Arrays.fill(sizes, 0, count, fixedBytes)
    var c = 0
    while (c < numColumns) {
      val column = columns(c)
      if (column.isBytes) {
        val lengths = column.words
        val nulls = if (column.hasNulls) column.nulls else null
        var i = 0
        while (i < count) {
          if (nulls == null || nulls(from + i) == 0) {
            sizes(i) += roundNumberOfBytesToNearestWord(lengths(from + i).toInt)
          }
          i += 1
        }
      }
      c += 1
    }
  }

  /**
   * Writes `count` rows from `from` on, at most `AtOnce`, each to an offset in one of the pages.
   */
  def copyTo(
      from: Int,
      count: Int,
      pages: Array[AnyRef],
      page: Array[Int],
      offsets: Array[Long]): Unit = {
    var word = 0
    while (word < nullBytes) {
      var i = 0
      while (i < count) {
        Platform.putLong(pages(page(i)), offsets(i) + word, 0L)
        i += 1
      }
      word += 8
    }
    java.util.Arrays.fill(ends, 0, count, fixedBytes)
    var c = 0
    while (c < numColumns) {
      val column = columns(c)
      val cell = nullBytes + 8L * c
      if (column.isBytes) copyBytes(column, cell, from, count, pages, page, offsets)
      else copyWords(column.words, cell, from, count, pages, page, offsets)
      if (column.hasNulls) markNulls(column.nulls, c, from, count, pages, page, offsets)
      c += 1
    }
  }

  private def copyWords(
      words: Array[Long],
      cell: Long,
      from: Int,
      count: Int,
      pages: Array[AnyRef],
      page: Array[Int],
      offsets: Array[Long]): Unit = {
    var i = 0
    while (i < count) {
      Platform.putLong(pages(page(i)), offsets(i) + cell, words(from + i))
      i += 1
    }
  }

  private def copyBytes(
      column: BlockColumn,
      cell: Long,
      from: Int,
      count: Int,
      pages: Array[AnyRef],
      page: Array[Int],
      offsets: Array[Long]): Unit = {
    val bytes = column.bytes
    val starts = column.starts
    val lengths = column.words
    val nulls = if (column.hasNulls) column.nulls else null
    var i = 0
    while (i < count) {
      if (nulls == null || nulls(from + i) == 0) {
        val base = pages(page(i))
        val length = lengths(from + i).toInt
        val rounded = roundNumberOfBytesToNearestWord(length)
        val end = ends(i)
        val to = offsets(i) + end
        RowBytes.copyPadded(bytes, starts(from + i), base, to, length)
        Platform.putLong(base, offsets(i) + cell, (end.toLong << 32) | length)
        ends(i) = end + rounded
      }
      i += 1
    }
  }

  private def markNulls(
      nulls: Array[Long],
      c: Int,
      from: Int,
      count: Int,
      pages: Array[AnyRef],
      page: Array[Int],
      offsets: Array[Long]): Unit = {
    val word = (c >> 6) * 8
    var i = 0
    while (i < count) {
      if (nulls(from + i) != 0) {
        val base = pages(page(i))
        val at = offsets(i) + word
        Platform.putLong(base, at, Platform.getLong(base, at) | (1L << (c & 63)))
        Platform.putLong(base, offsets(i) + nullBytes + 8 * c, 0L)
      }
      i += 1
    }
  }
}

object ColumnBlockRows {

  /**
   * Number of rows that are written at once, so few that they stay in the processor's cache
   * meanwhile.
   */
  val AtOnce: Int = 256

  // Far below the largest Int, which leaves room for the padding after strings in many columns.
  private val Short = 1L << 28
}
