package io.github.skewext.multijoin

import io.github.skewext.RowBytes

import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeArrayData, UnsafeRow}
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.bitset.BitSetMethods

/**
 * Puts an output row together from one row of every input. All are UnsafeRows, so a column is a word
 * to copy and, if its length varies, some more bytes; a generated projection would make an object of
 * every string in between. The row it gives is overwritten by the next one.
 *
 * @param output columns over [[InputRows]], as [[MultiFullJoinExec]] makes them
 */
final class RowAssembler(inputTypes: Seq[Seq[DataType]], output: Seq[Expression]) {
  import RowAssembler._

  private[this] val bitSetBytes = UnsafeRow.calculateBitSetWidthInBytes(output.size)
  private[this] val fixedBytes = bitSetBytes + 8 * output.size
  private[this] val row = new UnsafeRow(output.size)
  private[this] var buffer = new Array[Byte](math.max(256, 2 * fixedBytes))

  /** Where in the buffer the next bytes of varying length go. */
  private[this] var position = 0L

  /** The key's columns, as the rows of each input have them: it comes from the first that has it. */
  private[this] val keys: Array[Columns] = inputTypes.indices.map { i =>
    columns(
      i,
      output.zipWithIndex.collect { case (c: FirstPresentColumn, to) =>
        c.ordinals(i) -> to
      })
  }.toArray

  private[this] val values: Array[Columns] = inputTypes.indices.map { i =>
    columns(
      i,
      output.zipWithIndex.collect { case (InputColumn(`i`, ordinal, _, _), to) =>
        ordinal -> to
      })
  }.toArray

  private[this] val indicator = output.indexWhere(_.isInstanceOf[IndicatorColumn])

  private def columns(input: Int, fromTo: Seq[(Int, Int)]): Columns = {
    val types = inputTypes(input)
    new Columns(
      UnsafeRow.calculateBitSetWidthInBytes(types.size),
      fromTo.map(_._1).toArray,
      fromTo.map(_._2).toArray,
      fromTo.map { case (ordinal, _) => !UnsafeRow.isFixedLength(types(ordinal)) }.toArray)
  }

  def apply(combination: InputRows): UnsafeRow = {
    val rows = combination.rows
    val first = combination.first
    makeRoom(rows, first, combination.indicator)
    var bits = 0
    while (bits < bitSetBytes) {
      Platform.putLong(buffer, Start + bits, 0L)
      bits += 8
    }
    position = Start + fixedBytes
    copy(rows(first), keys(first))
    var i = 0
    while (i < rows.length) {
      val row = rows(i)
      if (row ne null) copy(row, values(i)) else setNull(values(i))
      i += 1
    }
    if (indicator >= 0) {
      val array = combination.indicator.asInstanceOf[UnsafeArrayData]
      putBytes(indicator, array.getBaseObject, array.getBaseOffset, array.getSizeInBytes)
    }
    row.pointTo(buffer, Start, (position - Start).toInt)
    row
  }

  /** For more than is needed: as if everything of the inputs' rows came along, keys twice. */
  private def makeRoom(rows: Array[UnsafeRow], first: Int, indicator: AnyRef): Unit = {
    var needed = fixedBytes.toLong + rows(first).getSizeInBytes
    var i = 0
    while (i < rows.length) {
      if (rows(i) ne null) needed += rows(i).getSizeInBytes
      i += 1
    }
    if (indicator ne null) needed += indicator.asInstanceOf[UnsafeArrayData].getSizeInBytes + 8
    if (needed > buffer.length) {
      require(needed <= MaxBytes, s"A row of the join would have $needed bytes.")
      buffer = new Array[Byte](math.min(MaxBytes, 2 * needed).toInt)
    }
  }

  private def copy(row: UnsafeRow, columns: Columns): Unit = {
    val base = row.getBaseObject
    val offset = row.getBaseOffset
    val words = offset + columns.bitSetBytes
    val anyNull = BitSetMethods.anySet(base, offset, columns.bitSetBytes >>> 3)
    val from = columns.from
    val to = columns.to
    val varying = columns.varying
    var j = 0
    while (j < from.length) {
      if (anyNull && BitSetMethods.isSet(base, offset, from(j))) {
        setNull(to(j))
      } else {
        val word = Platform.getLong(base, words + (from(j).toLong << 3))
        if (varying(j)) putBytes(to(j), base, offset + (word >>> 32), word.toInt)
        else putWord(to(j), word)
      }
      j += 1
    }
  }

  private def putBytes(column: Int, base: AnyRef, offset: Long, size: Int): Unit = {
    val padded = (size + 7) & ~7
    RowBytes.copy(base, offset, buffer, position, padded)
    putWord(column, ((position - Start) << 32) | size)
    position += padded
  }

  private def setNull(columns: Columns): Unit = {
    var j = 0
    while (j < columns.to.length) {
      setNull(columns.to(j))
      j += 1
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
  private val MaxBytes = (Int.MaxValue - 15).toLong

  /** Columns of one input's rows, and which columns of the output they become. */
  private final class Columns(
      val bitSetBytes: Int,
      val from: Array[Int],
      val to: Array[Int],
      val varying: Array[Boolean])
}
