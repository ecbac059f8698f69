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

  /**
   * Appends at least one row, and at most so many. Fewer are appended if their strings have more than
   * `mostBytes` bytes. These are not copied, as their lengths are read first.
   *
   * @return the number of rows that were appended
   */
  def append(column: ColumnVector, from: Int, rows: Int, mostBytes: Int = Int.MaxValue): Int = {
    if (count + rows > words.length) {
      words = Arrays.copyOf(words, math.max(count + rows, 2 * words.length))
    }
    if (column.hasNull) hasNulls = true
    if (hasNulls && nulls.length < count + rows) nulls = Arrays.copyOf(nulls, words.length)
    lastBytes = bytes.size
    val appended =
      if (isBytes) {
        appendBytes(column, from, rows, mostBytes)
      } else {
        appendWords(column, from, rows)
        rows
      }
    count += appended
    appended
  }

  /** Removes the last ones of the rows that were appended last. */
  def removeLast(rows: Int): Unit = {
    val kept = count - rows
    if (isBytes) {
      var removed = 0
      var i = kept
      while (i < count) {
        val length = words(i).toInt
        removed += length
        lastRowBytes -= roundNumberOfBytesToNearestWord(length)
        i += 1
      }
      numBytes -= removed
      // Shared bytes may be those of other rows.
      if (!sharesBytes) bytes.size -= removed
    }
    // A later batch without nulls does not write them.
    if (hasNulls) Arrays.fill(nulls, kept, count, 0)
    count = kept
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

  private def appendBytes(column: ColumnVector, from: Int, rows: Int, mostBytes: Int): Int = {
    var hasStarts = false
    var appended = 0
    column match {
      case ofRows: RowColumn =>
        // They fit on a page, or it is one row.
        ofRows.copyStrings(from, rows, words, nulls, count, bytes)
        appended = rows
      case vector: WritableColumnVector if vector.hasDictionary =>
        appended = appendShared(vector, from, rows, mostBytes)
        hasStarts = appended > 0
      case vector: WritableColumnVector if !vector.hasNull =>
        appended = appendAtOnce(vector, from, rows, mostBytes)
      case _ =>
    }
    if (appended == 0) appended = appendEach(column, from, rows, mostBytes)
    if (sharesBytes && !hasStarts) noteStarts(count, appended, lastBytes)
    lastRowBytes = 0
    var sum = numBytes.toLong
    var i = count
    while (i < count + appended) {
      val length = words(i).toInt
      sum += length
      lastRowBytes += roundNumberOfBytesToNearestWord(length)
      i += 1
    }
    numBytes = ByteBuilder.checked(sum)
    appended
  }

  /**
   * Appends strings of a dictionary without a copy of each. Returns the number of rows, 0 if the
   * dictionary is not known. Each row counts with all bytes of its string: its block has a copy.
   */
  private def appendShared(
      vector: WritableColumnVector,
      from: Int,
      rows: Int,
      mostBytes: Int): Int = {
    val dictionary = SharedStrings.dictionaryOf(vector)
    var i = 0
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
      var left = mostBytes.toLong
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
          left -= words(at + i)
          if (left < 0 && i > 0) return i
        }
        i += 1
      }
    }
    i
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
   * Returns the number of rows, 0 if they are not.
   */
  private def appendAtOnce(
      vector: WritableColumnVector,
      from: Int,
      rows: Int,
      mostBytes: Int): Int = {
    val words = this.words
    val first = vector.getArrayOffset(from)
    val most = first + mostBytes.toLong
    var next = first
    var i = 0
    while (i < rows && (next <= most || i == 0)) {
      if (vector.getArrayOffset(from + i) != next) return 0
      val length = vector.getArrayLength(from + i)
      words(count + i) = length
      next += length
      i += 1
    }
    if (next > most && i > 1) {
      i -= 1
      next -= words(count + i).toInt
    }
    val all = vector.arrayData().getByteBuffer(first, next - first)
    val begin = Platform.BYTE_ARRAY_OFFSET.toLong + all.arrayOffset + all.position()
    bytes.put(all.array, begin, next - first)
    i
  }

  private def appendEach(column: ColumnVector, from: Int, rows: Int, mostBytes: Int): Int = {
    val isString = ColumnCell.isString(kind)
    val mayBeNull = column.hasNull
    val most = bytes.size + mostBytes.toLong
    var i = 0
    while (i < rows) {
      val isNull = mayBeNull && column.isNullAt(from + i)
      val before = bytes.size
      if (mayBeNull) nulls(count + i) = if (isNull) 1 else 0
      if (isNull) {
        words(count + i) = 0
      } else if (isString) {
        val string = column.getUTF8String(from + i)
        if (before + string.numBytes.toLong > most && i > 0) return i
        bytes.put(string.getBaseObject, string.getBaseOffset, string.numBytes)
      } else {
        val binary = column.getBinary(from + i)
        if (before + binary.length.toLong > most && i > 0) return i
        bytes.put(binary, Platform.BYTE_ARRAY_OFFSET.toLong, binary.length)
      }
      words(count + i) = bytes.size - before
      i += 1
    }
    i
  }

  def clear(): Unit = {
    if (hasNulls) Arrays.fill(nulls, 0)
    hasNulls = false
    count = 0
    bytes.clear()
    numBytes = 0
    if (sharesBytes) shared.forget()
    sharesBytes = false
  }
}

private object AppendedColumn {

  // Initial capacity in values.
  private val Initial = 4096
}
