package io.github.skewext.internal

import java.io.IOException

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods.roundNumberOfBytesToNearestWord

/**
 * The rows of a block of [[ColumnRuns]], byte for byte as Spark's own exchange would have them: one after
 * the other, or many at once, column by column. What cannot be such a block is an `IOException`, after which
 * Spark fetches it once more.
 *
 * @param types of its columns
 */
final class ColumnBlockRows(types: Seq[DataType]) {
  private[this] val columns = types.map(new BlockColumn(_)).toArray
  private[this] val numColumns = columns.length
  private[this] val nullBytes = (numColumns + 63) / 64 * 8
  private[this] val fixedBytes = nullBytes + 8 * numColumns

  private[this] var current = 0
  private[this] var buffer = new Array[Byte](fixedBytes + 64)

  // Of rows that are written at once, how long each is so far.
  private[this] val ends = new Array[Int](ColumnBlockRows.AtOnce)

  var numRows = 0

  /** Valid until `next`, and points to a buffer that is written again then. */
  val row = new UnsafeRow(numColumns)

  def column(i: Int): BlockColumn = columns(i)

  /** @param size of the block, behind which there are `PackedWords.Slack` bytes more */
  def open(bytes: Array[Byte], size: Int): Unit = {
    current = 0
    numRows = 0
    if (size < 4) throw new IOException("A shuffle block without a number of rows")
    val rows = Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET.toLong)
    if (rows <= 0 || rows > ColumnRuns.BlockRows) {
      throw new IOException(s"A shuffle block of $rows rows")
    }
    var at = 4
    var i = 0
    while (i < numColumns) {
      at = columns(i).decode(bytes, at, size, rows)
      i += 1
    }
    if (at != size) throw new IOException(s"${size - at} bytes too many in a shuffle block")
    numRows = rows
  }

  /** Whether there is no row whose size would need a second look. */
  def isOfShortRows: Boolean = columns.iterator.map(_.numBytes.toLong).sum < ColumnBlockRows.Short

  /** How many rows were taken. */
  def taken: Int = current

  /** Takes rows, up to this one. */
  def takeUntil(row: Int): Unit = current = row

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

  /** Puts a string behind the row's first `size` bytes; gives how many they are then. */
  private def putBytes(column: BlockColumn, cell: Long, size: Int): Int = {
    val length = column.words(current).toInt
    val rounded = roundNumberOfBytesToNearestWord(length)
    if (buffer.length - size < rounded) {
      buffer = java.util.Arrays.copyOf(buffer, RowBytes.grown(Math.addExact(size, rounded)))
    }
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    // Rows are compared by all their bytes, also those behind a string.
    if (rounded > length) Platform.putLong(buffer, at + size + rounded - 8, 0L)
    RowBytes.copyShort(column.bytes, column.starts(current), buffer, at + size, length)
    Platform.putLong(buffer, cell, (size.toLong << 32) | length)
    size + rounded
  }

  /** The sizes of rows, no more than `AtOnce`, from `from` on. */
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
   * Writes rows, no more than `AtOnce`, from `from` on, each to a place of its size: at an offset in one of
   * some pages.
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
        if (rounded > length) Platform.putLong(base, to + rounded - 8, 0L)
        RowBytes.copyShort(bytes, starts(from + i), base, to, length)
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

  /** Rows that are written at once: what is written stays in the processor's cache meanwhile. */
  val AtOnce: Int = 256

  // Many columns, each with some bytes behind its strings, are far from making that too much for an Int.
  private val Short = 1L << 28
}
