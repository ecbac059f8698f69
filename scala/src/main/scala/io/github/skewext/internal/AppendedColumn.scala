package io.github.skewext.internal

import java.util.Arrays

import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.unsafe.Platform

/** The values of one column, in the order in which they were appended. */
final class AppendedColumn(dataType: DataType) {

  /** As in [[ColumnCell]]. */
  val kind: Int = ColumnCell.kindOf(dataType).get
  val isBytes: Boolean = ColumnCell.isBytes(kind)

  /** Words, or the lengths of strings; 0 in place of a null. */
  var words = new Array[Long](AppendedColumn.Initial)

  /** 1 for a null, 0 for a value; stays empty until there is a null. */
  var nulls: Array[Long] = Array.emptyLongArray
  var hasNulls = false
  var count = 0

  /** Of all strings. */
  val bytes = new ByteBuilder(0)

  /** Where those begin that were appended last. */
  var lastBytes = 0

  def append(column: ColumnVector, from: Int, rows: Int): Unit = {
    if (count + rows > words.length) {
      words = Arrays.copyOf(words, math.max(count + rows, 2 * words.length))
    }
    if (column.hasNull) hasNulls = true
    if (hasNulls && nulls.length < count + rows) nulls = Arrays.copyOf(nulls, words.length)
    lastBytes = bytes.size
    if (isBytes) appendBytes(column, from, rows) else appendWords(column, from, rows)
    count += rows
  }

  private def appendWords(column: ColumnVector, from: Int, rows: Int): Unit = {
    val words = this.words
    val at = count
    var i = 0
    if (column.hasNull) {
      while (i < rows) {
        val isNull = column.isNullAt(from + i)
        nulls(at + i) = if (isNull) 1 else 0
        words(at + i) = if (isNull) 0 else ColumnCell.word(kind, dataType, column, from + i)
        i += 1
      }
    } else {
      while (i < rows) {
        words(at + i) = ColumnCell.word(kind, dataType, column, from + i)
        i += 1
      }
    }
  }

  private def appendBytes(column: ColumnVector, from: Int, rows: Int): Unit = {
    val isString = ColumnCell.isString(kind)
    val mayBeNull = column.hasNull
    var i = 0
    while (i < rows) {
      val isNull = mayBeNull && column.isNullAt(from + i)
      val before = bytes.size
      if (mayBeNull) nulls(count + i) = if (isNull) 1 else 0
      if (isNull) {
        words(count + i) = 0
      } else if (isString) {
        val string = column.getUTF8String(from + i)
        bytes.put(string.getBaseObject, string.getBaseOffset, string.numBytes)
      } else {
        val binary = column.getBinary(from + i)
        bytes.put(binary, Platform.BYTE_ARRAY_OFFSET.toLong, binary.length)
      }
      words(count + i) = bytes.size - before
      i += 1
    }
  }

  def clear(): Unit = {
    if (hasNulls) Arrays.fill(nulls, 0)
    hasNulls = false
    count = 0
    bytes.size = 0
  }
}

private object AppendedColumn {

  // Values that there is room for, before it grows.
  private val Initial = 4096
}
