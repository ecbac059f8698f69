package io.github.skewext.shuffle

import java.io.IOException

import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform

/**
 * One column of a [[PartitionedColumnBuffer]] block. An invalid column causes an `IOException` when
 * the block is opened. Values are decoded when they are first read, as some consumers need only the
 * keys.
 */
final class BlockColumn(dataType: DataType) {
  private[this] val kind = ColumnCell.kindOf(dataType).get
  private[this] val mask = ColumnCell.mask(kind)
  private[this] val strings = if (ColumnCell.isBytes(kind)) new SmallAlphabetReader else null

  // The values that have not been decoded: numbers, or the bytes of strings.
  private[this] var isEncoded = false
  private[this] var block: Array[Byte] = _
  private[this] var rows = 0
  private[this] var encodedAt = 0

  private[this] var decodedWords = Array.emptyLongArray
  private[this] var decodedStarts = Array.emptyLongArray

  val isBytes: Boolean = ColumnCell.isBytes(kind)

  /** Whether the column has nulls. If so, `nulls` is not 0 for a null. */
  var hasNulls = false
  var nulls: Array[Long] = Array.emptyLongArray

  /** The number of bytes of all strings. */
  var numBytes = 0

  /** The word that a row has for each value, 0 for a null. For strings, their lengths. */
  def words: Array[Long] = {
    if (isEncoded && !isBytes) decodeWords()
    decodedWords
  }

  /** For strings: the array that holds them. */
  def bytes: Array[Byte] = {
    if (isEncoded) decodeStrings()
    strings.bytes
  }

  /** For strings: the start of each as an offset for [[Platform]]. */
  def starts: Array[Long] = {
    if (isEncoded) decodeStrings()
    decodedStarts
  }

  /** Finds the column of `rows` rows that begins at `at`. Returns its end. */
  def open(block: Array[Byte], at: Int, end: Int, rows: Int): Int = {
    if (at >= end) throw new IOException("A column that is not there in a shuffle block")
    hasNulls = block(at) == 1
    if (!hasNulls && block(at) != 0) throw new IOException("No mark of nulls in a shuffle block")
    this.block = block
    this.rows = rows
    isEncoded = true
    encodedAt = at + 1
    if (decodedWords.length < rows) decodedWords = new Array[Long](roomFor(rows))
    if (hasNulls) {
      if (nulls.length < rows) nulls = new Array[Long](roomFor(rows))
      encodedAt = BitPacking.endOf(block, at + 1, end, rows)
      BitPacking.decode(block, at + 1, rows, nulls)
    }
    val next = BitPacking.endOf(block, encodedAt, end, rows)
    if (isBytes) openStrings(next, end) else next
  }

  /** Capacity for the rows of a block. Tasks with many partitions have only small blocks. */
  private def roomFor(rows: Int): Int = math.min(PartitionedColumnBuffer.BlockRows, 2 * rows)

  private def decodeWords(): Unit = {
    BitPacking.decode(block, encodedAt, rows, decodedWords)
    isEncoded = false
    if (mask != -1L) {
      var i = 0
      while (i < rows) {
        decodedWords(i) &= mask
        i += 1
      }
    }
  }

  /** Decodes the lengths, which are necessary to find the end. */
  private def openStrings(at: Int, end: Int): Int = {
    val most = strings.most(block, at, end)
    BitPacking.decode(block, encodedAt, rows, decodedWords)
    if (decodedStarts.length < rows) decodedStarts = new Array[Long](roomFor(rows))
    var sum = 0L
    var i = 0
    while (i < rows) {
      val length = decodedWords(i)
      if (length < 0 || length > most) {
        throw new IOException(s"A string of $length bytes in a shuffle block")
      }
      decodedStarts(i) = sum
      sum += length
      i += 1
    }
    if (sum > most) throw new IOException("Strings that go beyond their shuffle block")
    numBytes = sum.toInt
    encodedAt = at
    strings.endOf(block, at, numBytes)
  }

  private def decodeStrings(): Unit = {
    strings.decode(block, encodedAt, numBytes)
    isEncoded = false
    val begin = (Platform.BYTE_ARRAY_OFFSET + strings.begin).toLong
    var i = 0
    while (i < rows) {
      decodedStarts(i) += begin
      i += 1
    }
  }
}
