package io.github.skewext.internal

import java.io.IOException

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods.roundNumberOfBytesToNearestWord

/**
 * The rows of a block of [[ColumnRuns]], byte for byte as Spark's own exchange would have them. What
 * cannot be such a block is an `IOException`, after which Spark fetches it once more.
 *
 * @param types of its columns
 */
final class ColumnBlockRows(types: Seq[DataType]) {
  private[this] val kinds = types.map(ColumnCell.kindOf(_).get).toArray
  private[this] val masks = kinds.map(ColumnCell.mask)
  private[this] val numColumns = kinds.length
  private[this] val nullBytes = (numColumns + 63) / 64 * 8
  private[this] val fixedBytes = nullBytes + 8 * numColumns

  // Of each column the words or lengths, whether they are null, and where its next string begins.
  private[this] val words = kinds.map(_ => new Array[Long](ColumnRuns.BlockRows))
  private[this] val nulls = kinds.map(_ => Array.emptyLongArray)
  private[this] val hasNulls = new Array[Boolean](numColumns)
  private[this] val stringAt = new Array[Int](numColumns)

  private[this] var block: Array[Byte] = _
  private[this] var numRows = 0
  private[this] var current = 0
  private[this] var buffer = new Array[Byte](fixedBytes + 64)

  /** Valid until `next`, and points to a buffer that is written again then. */
  val row = new UnsafeRow(numColumns)

  /** @param size of the block, behind which there are `PackedWords.Slack` bytes more */
  def open(bytes: Array[Byte], size: Int): Unit = {
    block = bytes
    current = 0
    if (size < 4) throw new IOException("A shuffle block without a number of rows")
    numRows = Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET.toLong)
    if (numRows <= 0 || numRows > ColumnRuns.BlockRows) {
      throw new IOException(s"A shuffle block of $numRows rows")
    }
    var at = 4
    var i = 0
    while (i < numColumns) {
      at = openColumn(i, at, size)
      i += 1
    }
    if (at != size) throw new IOException(s"${size - at} bytes too many in a shuffle block")
  }

  private def openColumn(i: Int, at: Int, end: Int): Int = {
    if (at >= end) throw new IOException("A column that is not there in a shuffle block")
    hasNulls(i) = block(at) == 1
    if (!hasNulls(i) && block(at) != 0) throw new IOException("No mark of nulls in a shuffle block")
    var next = at + 1
    if (hasNulls(i)) {
      if (nulls(i).isEmpty) nulls(i) = new Array[Long](ColumnRuns.BlockRows)
      next = PackedWords.decode(block, next, end, numRows, nulls(i))
    }
    next = PackedWords.decode(block, next, end, numRows, words(i))
    if (ColumnCell.isBytes(kinds(i))) {
      stringAt(i) = next
      next += lengthOf(words(i), end - next)
    }
    next
  }

  private def lengthOf(lengths: Array[Long], most: Int): Int = {
    var sum = 0L
    var i = 0
    while (i < numRows) {
      val length = lengths(i)
      if (length < 0 || length > most) {
        throw new IOException(s"A string of $length bytes in a shuffle block")
      }
      sum += length
      i += 1
    }
    if (sum > most) throw new IOException("Strings that go beyond their shuffle block")
    sum.toInt
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
      val cell = at + nullBytes + 8 * i
      if (hasNulls(i) && nulls(i)(current) != 0) {
        val word = at + (i >> 6) * 8
        Platform.putLong(buffer, word, Platform.getLong(buffer, word) | (1L << (i & 63)))
        Platform.putLong(buffer, cell, 0L)
      } else if (ColumnCell.isBytes(kinds(i))) {
        size = putBytes(i, size)
      } else {
        Platform.putLong(buffer, cell, words(i)(current) & masks(i))
      }
      i += 1
    }
    row.pointTo(buffer, size)
    current += 1
  }

  /** Puts a string behind the row's first `size` bytes; gives how many they are then. */
  private def putBytes(i: Int, size: Int): Int = {
    val length = words(i)(current).toInt
    val rounded = roundNumberOfBytesToNearestWord(length)
    if (buffer.length - size < rounded) {
      buffer = java.util.Arrays.copyOf(buffer, RowBytes.grown(Math.addExact(size, rounded)))
    }
    val at = Platform.BYTE_ARRAY_OFFSET.toLong
    // Rows are compared by all their bytes, also those behind a string.
    if (rounded > length) Platform.putLong(buffer, at + size + rounded - 8, 0L)
    RowBytes.copyShort(block, at + stringAt(i), buffer, at + size, length)
    Platform.putLong(buffer, at + nullBytes + 8 * i, (size.toLong << 32) | length)
    stringAt(i) += length
    size + rounded
  }
}
