package io.github.skewext.shuffle

import java.util.Arrays

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods.roundNumberOfBytesToNearestWord

/** The values of one column, in the order in which they were appended. */
final class AppendedColumn(dataType: DataType) {

  /** The kind of the type, see [[ColumnCell]]. */
  val kind: Int = ColumnCell.kindOf(dataType).get
  val isBytes: Boolean = ColumnCell.isBytes(kind)

  /** Words, or the lengths of strings; 0 in place of a null. */
  var words = new Array[Long](AppendedColumn.Initial)

  /** 1 for a null, 0 for a value; stays empty until there is a null. */
  var nulls: Array[Long] = Array.emptyLongArray
  var hasNulls = false
  var count = 0

  /** The bytes of all strings. Rows with the same string of a dictionary share its bytes. */
  val bytes = new ByteBuilder(0)

  /** The start of each string in `bytes`, if `sharesBytes`. Otherwise each follows the one before it. */
  var starts: Array[Int] = Array.emptyIntArray
  var sharesBytes = false

  /** The sum of the strings' lengths. */
  var numBytes = 0

  /** The start of the strings that were appended last, unless bytes are shared. */
  var lastBytes = 0

  /** The number of bytes that these strings take in rows. */
  var lastRowBytes = 0L

  private[this] val shared = new SharedStrings(bytes)

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

  private def appendWords(column: ColumnVector, from: Int, rows: Int): Unit = column match {
    case ofRows: RowColumn => ofRows.copyWords(kind, from, rows, words, nulls, count)
    case _ if column.hasNull =>
      val at = count
      var i = 0
      while (i < rows) {
        val isNull = column.isNullAt(from + i)
        nulls(at + i) = if (isNull) 1 else 0
        words(at + i) = if (isNull) 0 else ColumnCell.word(kind, dataType, column, from + i)
        i += 1
      }
    case _ => ColumnCell.words(kind, dataType, column, from, rows, words, count)
  }

  private def appendBytes(column: ColumnVector, from: Int, rows: Int): Unit = {
    val hasStarts = column match {
      case ofRows: RowColumn =>
        ofRows.copyStrings(from, rows, words, nulls, count, bytes)
        false
      case vector: WritableColumnVector
          if vector.hasDictionary && appendShared(vector, from, rows) =>
        true
      case vector: WritableColumnVector
          if !vector.hasNull && !vector.hasDictionary && appendAtOnce(vector, from, rows) =>
        false
      case _ =>
        appendEach(column, from, rows)
        false
    }
    if (sharesBytes && !hasStarts) noteStarts(count, rows, lastBytes)
    lastRowBytes = 0
    var sum = numBytes.toLong
    var i = count
    while (i < count + rows) {
      val length = words(i).toInt
      sum += length
      lastRowBytes += roundNumberOfBytesToNearestWord(length)
      i += 1
    }
    numBytes = ByteBuilder.checked(sum)
  }

  /**
   * Appends strings of a dictionary without a copy of each. Returns false if the dictionary is not
   * known.
   */
  private def appendShared(vector: WritableColumnVector, from: Int, rows: Int): Boolean = {
    val dictionary = SharedStrings.dictionaryOf(vector)
    if (dictionary != null) {
      if (!sharesBytes) {
        sharesBytes = true
        noteStarts(0, count, 0)
      }
      makeRoomForStarts(count + rows)
      shared.begin(dictionary)
      val ids = vector.getDictionaryIds
      val mayBeNull = vector.hasNull
      val (words, starts, at) = (this.words, this.starts, count)
      var i = 0
      while (i < rows) {
        val isNull = mayBeNull && vector.isNullAt(from + i)
        if (mayBeNull) nulls(at + i) = if (isNull) 1 else 0
        if (isNull) {
          words(at + i) = 0
          starts(at + i) = 0
        } else {
          val id = ids.getDictId(from + i)
          starts(at + i) = shared.find(id, vector, from + i)
          words(at + i) = shared.lengthOf(id)
        }
        i += 1
      }
    }
    dictionary != null
  }

  /** Stores the starts of strings that follow one another. */
  private def noteStarts(first: Int, rows: Int, start: Int): Unit = {
    makeRoomForStarts(first + rows)
    var next = start
    var i = first
    while (i < first + rows) {
      starts(i) = next
      next += words(i).toInt
      i += 1
    }
  }

  private def makeRoomForStarts(rows: Int): Unit =
    if (starts.length < rows) starts = Arrays.copyOf(starts, math.max(rows, words.length))

  /**
   * Copies all strings at once if they are adjacent in the vector, as file readers leave them.
   * Returns false if they are not.
   */
  private def appendAtOnce(vector: WritableColumnVector, from: Int, rows: Int): Boolean = {
    val words = this.words
    val first = vector.getArrayOffset(from)
    var next = first
    var i = 0
    while (i < rows) {
      if (vector.getArrayOffset(from + i) != next) return false
      val length = vector.getArrayLength(from + i)
      words(count + i) = length
      next += length
      i += 1
    }
    val all = vector.arrayData().getByteBuffer(first, next - first)
    val begin = Platform.BYTE_ARRAY_OFFSET.toLong + all.arrayOffset + all.position()
    bytes.put(all.array, begin, next - first)
    true
  }

  private def appendEach(column: ColumnVector, from: Int, rows: Int): Unit = {
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
    numBytes = 0
    if (sharesBytes) shared.forget()
    sharesBytes = false
  }
}

private object AppendedColumn {

  // Initial capacity in values.
  private val Initial = 4096
}
