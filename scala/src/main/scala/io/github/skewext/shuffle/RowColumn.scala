package io.github.skewext.shuffle

import scala.annotation.switch

import org.apache.spark.sql.types.{DataType, Decimal}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/**
 * The values of one column in the rows of [[RowBatches]]. An [[AppendedColumn]] copies many at
 * once.
 *
 * @param nullBytes bytes at the start of each row that tell which columns are null
 */
private[shuffle] final class RowColumn(
    rows: RowBatches,
    ordinal: Int,
    nullBytes: Int,
    dataType: DataType)
    extends ColumnVector(dataType) {

  private[this] val cell = nullBytes + 8L * ordinal
  private[this] val nullWord = (ordinal >> 6) * 8L
  private[this] val nullBit = ordinal & 63

  override def hasNull: Boolean = rows.hasNull(ordinal)

  /**
   * Copies the words of rows, and for a column with nulls which are null. Each size of values has
   * its own loop.
   */
  def copyWords(
      kind: Int,
      from: Int,
      count: Int,
      words: Array[Long],
      nulls: Array[Long],
      at: Int): Unit = {
    val (base, offsets, cell) = (rows.base, rows.offsets, this.cell)
    var i = 0
    (kind: @switch) match {
      case ColumnCell.Booleans | ColumnCell.Bytes =>
        while (i < count) {
          words(at + i) = Platform.getByte(base, offsets(from + i) + cell)
          i += 1
        }
      case ColumnCell.Shorts =>
        while (i < count) {
          words(at + i) = Platform.getShort(base, offsets(from + i) + cell)
          i += 1
        }
      case ColumnCell.Ints | ColumnCell.Floats =>
        while (i < count) {
          words(at + i) = Platform.getInt(base, offsets(from + i) + cell)
          i += 1
        }
      case _ =>
        while (i < count) {
          words(at + i) = Platform.getLong(base, offsets(from + i) + cell)
          i += 1
        }
    }
    if (hasNull) copyNulls(from, count, words, nulls, at)
  }

  /** Copies the lengths of strings to `words`, and their bytes to `bytes`. */
  def copyStrings(
      from: Int,
      count: Int,
      words: Array[Long],
      nulls: Array[Long],
      at: Int,
      bytes: ByteBuilder): Unit = {
    val (base, offsets, cell) = (rows.base, rows.offsets, this.cell)
    var sum = 0L
    var i = 0
    while (i < count) {
      val length = Platform.getInt(base, offsets(from + i) + cell)
      words(at + i) = length
      sum += length
      i += 1
    }
    bytes.ensure(ByteBuilder.checked(sum))
    val to = bytes.array
    var end = Platform.BYTE_ARRAY_OFFSET.toLong + bytes.size
    i = 0
    while (i < count) {
      val offset = offsets(from + i)
      val length = words(at + i).toInt
      val start = offset + Platform.getInt(base, offset + cell + 4)
      RowBytes.copyShort(base, start, to, end, length)
      end += length
      i += 1
    }
    bytes.size += sum.toInt
    if (hasNull) copyNulls(from, count, words, nulls, at)
  }

  /** The cell of a null is zero, as the length of a string, too. */
  private def copyNulls(
      from: Int,
      count: Int,
      words: Array[Long],
      nulls: Array[Long],
      at: Int): Unit = {
    val (base, offsets) = (rows.base, rows.offsets)
    var i = 0
    while (i < count) {
      val isNull = Platform.getLong(base, offsets(from + i) + nullWord) >>> nullBit & 1
      nulls(at + i) = isNull
      words(at + i) &= isNull - 1
      i += 1
    }
  }

  override def close(): Unit = ()
  override def numNulls: Int = throw new UnsupportedOperationException
  override def isNullAt(row: Int): Boolean = rows.rowAt(row).isNullAt(ordinal)
  override def getBoolean(row: Int): Boolean = rows.rowAt(row).getBoolean(ordinal)
  override def getByte(row: Int): Byte = rows.rowAt(row).getByte(ordinal)
  override def getShort(row: Int): Short = rows.rowAt(row).getShort(ordinal)
  override def getInt(row: Int): Int = rows.rowAt(row).getInt(ordinal)
  override def getLong(row: Int): Long = rows.rowAt(row).getLong(ordinal)
  override def getFloat(row: Int): Float = rows.rowAt(row).getFloat(ordinal)
  override def getDouble(row: Int): Double = rows.rowAt(row).getDouble(ordinal)
  override def getUTF8String(row: Int): UTF8String = rows.rowAt(row).getUTF8String(ordinal)
  override def getBinary(row: Int): Array[Byte] = rows.rowAt(row).getBinary(ordinal)

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    rows.rowAt(row).getDecimal(ordinal, precision, scale)

  // No columnar exchange has nested types. `getChild` is public from Spark 4 on.
  override def getArray(row: Int): ColumnarArray = throw new UnsupportedOperationException
  override def getMap(row: Int): ColumnarMap = throw new UnsupportedOperationException
  override def getChild(ordinal: Int): ColumnVector = throw new UnsupportedOperationException
}
