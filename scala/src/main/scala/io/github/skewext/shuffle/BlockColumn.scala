package io.github.skewext.shuffle

import java.io.IOException

import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform

/** One decoded column of a [[PartitionedColumnBuffer]] block. An invalid column causes an `IOException`. */
final class BlockColumn(dataType: DataType) {
  private[this] val kind = ColumnCell.kindOf(dataType).get
  private[this] val mask = ColumnCell.mask(kind)
  private[this] val strings = if (ColumnCell.isBytes(kind)) new SmallAlphabetReader else null

  val isBytes: Boolean = ColumnCell.isBytes(kind)

  /** The word that a row has for each value, 0 for a null. For strings, their lengths. */
  var words: Array[Long] = Array.emptyLongArray

  /** Whether the column has nulls. If so, `nulls` is not 0 for a null. */
  var hasNulls = false
  var nulls: Array[Long] = Array.emptyLongArray

  /**
   * For strings: the array that holds them, and the start of each as an offset for [[Platform]].
   */
  var bytes: Array[Byte] = _
  var starts: Array[Long] = Array.emptyLongArray
  var numBytes = 0

  /** Decodes the column of `rows` rows that begins at `at`. Returns its end. */
  def decode(block: Array[Byte], at: Int, end: Int, rows: Int): Int = {
    if (at >= end) throw new IOException("A column that is not there in a shuffle block")
    hasNulls = block(at) == 1
    if (!hasNulls && block(at) != 0) throw new IOException("No mark of nulls in a shuffle block")
    var next = at + 1
    if (words.length < rows) words = new Array[Long](roomFor(rows))
    if (hasNulls) {
      if (nulls.length < rows) nulls = new Array[Long](roomFor(rows))
      next = BitPacking.decode(block, next, end, rows, nulls)
    }
    next = BitPacking.decode(block, next, end, rows, words)
    if (isBytes) decodeBytes(block, next, end, rows)
    else {
      if (mask != -1L) clip(rows)
      next
    }
  }

  /** Capacity for the rows of a block. Tasks with many partitions have only small blocks. */
  private def roomFor(rows: Int): Int = math.min(PartitionedColumnBuffer.BlockRows, 2 * rows)

  private def clip(rows: Int): Unit = {
    var i = 0
    while (i < rows) {
      words(i) &= mask
      i += 1
    }
  }

  private def decodeBytes(block: Array[Byte], at: Int, end: Int, rows: Int): Int = {
    val most = strings.most(block, at, end)
    if (starts.length < rows) starts = new Array[Long](roomFor(rows))
    var sum = 0L
    var i = 0
    while (i < rows) {
      val length = words(i)
      if (length < 0 || length > most) {
        throw new IOException(s"A string of $length bytes in a shuffle block")
      }
      starts(i) = sum
      sum += length
      i += 1
    }
    if (sum > most) throw new IOException("Strings that go beyond their shuffle block")
    val next = strings.decode(block, at, sum.toInt)
    bytes = strings.bytes
    numBytes = sum.toInt
    val begin = (Platform.BYTE_ARRAY_OFFSET + strings.begin).toLong
    i = 0
    while (i < rows) {
      starts(i) += begin
      i += 1
    }
    next
  }
}
