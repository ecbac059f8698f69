package io.github.skewext.rows

import io.github.skewext.shuffle.RowBytes

import org.apache.spark.sql.catalyst.expressions.{Coalesce, Expression, UnsafeArrayData, UnsafeRow}
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.bitset.BitSetMethods

/**
 * The output of a join's task.
 *
 * @param inputTypes the column types of each input.
 * @param columns the output's columns, over [[InputRows]].
 * @param makesRows whether the output is UnsafeRows, or the [[InputRows]] from which they are built.
 */
private[skewext] case class TaskOutput(
    inputTypes: Seq[Seq[DataType]],
    columns: Seq[Expression],
    makesRows: Boolean) {

  def assembler: RowAssembler = new RowAssembler(inputTypes, columns)
}

/**
 * Builds an output row from one row of every input. All rows are UnsafeRows, so a column is one
 * word to copy and, if its length varies, some bytes. A generated projection would create an object
 * for every string. The next row overwrites the returned one.
 *
 * Most combinations of a key with many rows differ from the previous one only in the last input. So
 * variable-length bytes are in the order of the inputs, after those of columns that may come from
 * any input. The bytes of inputs with an unchanged row remain in place.
 *
 * @param output columns over [[InputRows]], as [[MultiFullJoinExec]] creates them
 */
final class RowAssembler(inputTypes: Seq[Seq[DataType]], output: Seq[Expression]) {
  import RowAssembler._

  private[this] val n = inputTypes.size
  private[this] val bitSetBytes = UnsafeRow.calculateBitSetWidthInBytes(output.size)
  private[this] val fixedBytes = bitSetBytes + 8 * output.size
  private[this] val row = new UnsafeRow(output.size)
  private[this] var buffer = new Array[Byte](math.max(256, 2 * fixedBytes))

  /** The position in the buffer for the next variable-length bytes. */
  private[this] var position = 0L

  /**
   * The start of each input's variable-length bytes in the buffer, and the end of the last input's.
   */
  private[this] val starts = new Array[Long](n + 1)

  /** Whether one of an input's columns is null in the previous row. */
  private[this] val hasNulls = new Array[Boolean](n)

  /** The last input that was read for columns that may come from any input. */
  private[this] var lookedAt = 0

  /**
   * The key columns in the rows of each input. The key is read from the first input that has it.
   */
  private[this] val keys: Array[Columns] = {
    val shown = output.zipWithIndex.collect { case (c: FirstPresentColumn, to) => c -> to }
    Array.tabulate(n)(i => columns(i, shown.map { case (c, to) => c.ordinals(i) -> to }))
  }

  private[this] val coalesced: Array[Coalesced] = output.zipWithIndex.collect {
    case (Coalesce(columns), to) =>
      val from = columns.map(_.asInstanceOf[InputColumn])
      new Coalesced(
        from.map(_.input).toArray,
        from.map(c => columnsOf(c.input, c.ordinal, to)).toArray,
        to)
  }.toArray

  private[this] val values: Array[Columns] = {
    val byInput = output.zipWithIndex
      .collect { case (c: InputColumn, to) => c -> to }
      .groupBy(_._1.input)
    Array.tabulate(n) { i =>
      columns(i, byInput.getOrElse(i, Nil).map { case (c, to) => c.ordinal -> to })
    }
  }

  private[this] val indicator = output.indexWhere(_.isInstanceOf[IndicatorColumn])
  private[this] val exists = output.indexOf(ExistsColumn)

  private def columnsOf(input: Int, ordinal: Int, to: Int) = columns(input, Seq(ordinal -> to))

  private def columns(input: Int, fromTo: Seq[(Int, Int)]): Columns = {
    val types = inputTypes(input)
    new Columns(
      UnsafeRow.calculateBitSetWidthInBytes(types.size),
      fromTo.map(_._1).toArray,
      fromTo.map(_._2).toArray,
      fromTo.map { case (ordinal, _) => !UnsafeRow.isFixedLength(types(ordinal)) }.toArray)
  }

  /** @param changed the first input whose row differs from that of the previous call */
  def apply(combination: InputRows, changed: Int): UnsafeRow = {
    val rows = combination.rows
    var i = changed
    if (changed <= lookedAt) {
      i = 0
      begin(combination)
    } else {
      position = starts(changed)
    }
    while (i < n) {
      starts(i) = position
      val row = rows(i)
      if (hasNulls(i)) clearNulls(values(i))
      hasNulls(i) = if (row eq null) setNull(values(i)) else copy(row, values(i))
      i += 1
    }
    starts(n) = position
    row.pointTo(buffer, Start, (position - Start).toInt)
    row
  }

  /** Writes all columns that do not come from one particular input. */
  private def begin(combination: InputRows): Unit = {
    val rows = combination.rows
    java.util.Arrays.fill(hasNulls, false)
    var bits = 0
    while (bits < bitSetBytes) {
      Platform.putLong(buffer, Start + bits, 0L)
      bits += 8
    }
    position = Start + fixedBytes
    lookedAt = combination.first
    copy(rows(lookedAt), keys(lookedAt))
    var c = 0
    while (c < coalesced.length) {
      coalesce(rows, coalesced(c))
      c += 1
    }
    if (exists >= 0) putWord(exists, if (combination.exists) 1L else 0L)
    if (indicator >= 0) {
      val array = combination.indicator.asInstanceOf[UnsafeArrayData]
      putBytes(indicator, array.getBaseObject, array.getBaseOffset, array.getSizeInBytes)
    }
  }

  private def coalesce(rows: Array[UnsafeRow], column: Coalesced): Unit = {
    var c = 0
    while (c < column.inputs.length) {
      val input = column.inputs(c)
      val row = rows(input)
      lookedAt = math.max(lookedAt, input)
      if ((row ne null) && !row.isNullAt(column.from(c).from(0))) {
        copy(row, column.from(c))
        return
      }
      c += 1
    }
    setNull(column.to)
  }

  /** Copies columns of a row. Returns whether one of them is null. */
  private def copy(row: UnsafeRow, columns: Columns): Boolean = {
    val base = row.getBaseObject
    val offset = row.getBaseOffset
    val words = offset + columns.bitSetBytes
    val anyNull = BitSetMethods.anySet(base, offset, columns.bitSetBytes >>> 3)
    if (columns.isRun && !anyNull) {
      copyRun(base, offset, words, columns)
      return false
    }
    val from = columns.from
    val to = columns.to
    val varying = columns.varying
    var nulls = false
    var j = 0
    while (j < from.length) {
      if (anyNull && BitSetMethods.isSet(base, offset, from(j))) {
        setNull(to(j))
        nulls = true
      } else {
        val word = Platform.getLong(base, words + (from(j).toLong << 3))
        if (varying(j)) putBytes(to(j), base, offset + (word >>> 32), word.toInt)
        else putWord(to(j), word)
      }
      j += 1
    }
    nulls
  }

  /** Copies columns that are adjacent in both rows and not null. */
  private def copyRun(base: AnyRef, offset: Long, words: Long, columns: Columns): Unit = {
    val first = words + (columns.from(0).toLong << 3)
    val target = buffer
    val cells = Start + bitSetBytes + (columns.to(0).toLong << 3)
    val bytes = columns.from.length << 3
    var at = 0
    while (at < bytes) {
      Platform.putLong(target, cells + at, Platform.getLong(base, first + at))
      at += 8
    }
    val varying = columns.varyingPlaces
    var v = 0
    while (v < varying.length) {
      val word = Platform.getLong(base, first + (varying(v).toLong << 3))
      putBytes(columns.to(varying(v)), base, offset + (word >>> 32), word.toInt)
      v += 1
    }
  }

  private def putBytes(column: Int, base: AnyRef, offset: Long, size: Int): Unit = {
    val padded = (size + 7) & ~7
    if (position + padded > Start + buffer.length) makeRoom(padded)
    RowBytes.copy(base, offset, buffer, position, padded)
    putWord(column, ((position - Start) << 32) | size)
    position += padded
  }

  private def makeRoom(more: Int): Unit = {
    val needed = position - Start + more
    require(needed <= RowBytes.MostBytes, s"A row of the join would have $needed bytes or more.")
    buffer = java.util.Arrays.copyOf(buffer, RowBytes.grown(needed))
  }

  private def setNull(columns: Columns): Boolean = {
    val masks = columns.masks
    var at = Start + (columns.firstMask << 3)
    var m = 0
    while (m < masks.length) {
      Platform.putLong(buffer, at, Platform.getLong(buffer, at) | masks(m))
      at += 8
      m += 1
    }
    val to = columns.to
    var j = 0
    while (j < to.length) {
      putWord(to(j), 0L)
      j += 1
    }
    true
  }

  private def clearNulls(columns: Columns): Unit = {
    val masks = columns.masks
    var at = Start + (columns.firstMask << 3)
    var m = 0
    while (m < masks.length) {
      Platform.putLong(buffer, at, Platform.getLong(buffer, at) & ~masks(m))
      at += 8
      m += 1
    }
  }

  private def setNull(column: Int): Unit = {
    BitSetMethods.set(buffer, Start, column)
    putWord(column, 0L)
  }

  private def putWord(column: Int, word: Long): Unit =
    Platform.putLong(buffer, Start + bitSetBytes + (column.toLong << 3), word)
}

private object RowAssembler {
  private val Start = Platform.BYTE_ARRAY_OFFSET.toLong

  /** Columns of one input's rows, and their ordinals in the output. */
  private final class Columns(
      val bitSetBytes: Int,
      val from: Array[Int],
      val to: Array[Int],
      val varying: Array[Boolean]) {

    /** Whether the columns are adjacent in both rows, in the same order. */
    val isRun: Boolean =
      from.nonEmpty && from.indices.forall(j => from(j) == from(0) + j && to(j) == to(0) + j)

    /** The positions of columns of varying length. */
    val varyingPlaces: Array[Int] = varying.indices.filter(varying(_)).toArray

    /** The words of the output's null bits that have a bit of these columns, from `firstMask` on. */
    val firstMask: Int = if (to.isEmpty) 0 else to.min >> 6
    val masks: Array[Long] = {
      val found = new Array[Long](if (to.isEmpty) 0 else (to.max >> 6) - firstMask + 1)
      to.foreach(column => found((column >> 6) - firstMask) |= 1L << (column & 63))
      found
    }
  }

  /**
   * The first column that is not null among several, which come from the same or from different
   * inputs.
   */
  private final class Coalesced(val inputs: Array[Int], val from: Array[Columns], val to: Int)
}
