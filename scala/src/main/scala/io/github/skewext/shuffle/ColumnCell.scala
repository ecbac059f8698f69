package io.github.skewext.shuffle

import scala.annotation.switch

import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector

/** Reads values of each type from a column, as the eight bytes that an `UnsafeRow` has for them. */
object ColumnCell {
  final val Booleans = 0
  final val Bytes = 1
  final val Shorts = 2
  final val Ints = 3
  final val Longs = 4
  final val Floats = 5
  final val Doubles = 6
  final val Strings = 7
  final val Binaries = 8
  final val Decimals = 9

  /** The number by which this object identifies a type. None for a type that only rows can hold. */
  def kindOf(dataType: DataType): Option[Int] = dataType match {
    case BooleanType => Some(Booleans)
    case ByteType => Some(Bytes)
    case ShortType => Some(Shorts)
    case IntegerType | DateType | _: YearMonthIntervalType => Some(Ints)
    case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType => Some(Longs)
    case FloatType => Some(Floats)
    case DoubleType => Some(Doubles)
    case _: StringType => Some(Strings)
    case BinaryType => Some(Binaries)
    // Larger decimals need more than one word.
    case decimal: DecimalType if DecimalType.is64BitDecimalType(decimal) => Some(Decimals)
    case _ => None
  }

  def isBytes(kind: Int): Boolean = kind == Strings || kind == Binaries
  def isString(kind: Int): Boolean = kind == Strings

  /** The word of a value that is not null and not a string or binary. */
  def word(kind: Int, dataType: DataType, column: ColumnVector, row: Int): Long =
    (kind: @switch) match {
      case Booleans => if (column.getBoolean(row)) 1 else 0
      case Bytes => column.getByte(row)
      case Shorts => column.getShort(row)
      case Ints => column.getInt(row)
      case Longs => column.getLong(row)
      case Floats => java.lang.Float.floatToRawIntBits(column.getFloat(row))
      case Doubles => java.lang.Double.doubleToRawLongBits(column.getDouble(row))
      case Decimals =>
        val decimal = dataType.asInstanceOf[DecimalType]
        column.getDecimal(row, decimal.precision, decimal.scale).toUnscaledLong
    }

  /** The words of many values without nulls. Each frequent kind has its own loop. */
  def words(
      kind: Int,
      dataType: DataType,
      column: ColumnVector,
      from: Int,
      rows: Int,
      to: Array[Long],
      at: Int): Unit = {
    var i = 0
    (kind: @switch) match {
      case Ints =>
        while (i < rows) {
          to(at + i) = column.getInt(from + i)
          i += 1
        }
      case Longs =>
        while (i < rows) {
          to(at + i) = column.getLong(from + i)
          i += 1
        }
      case Doubles =>
        while (i < rows) {
          to(at + i) = java.lang.Double.doubleToRawLongBits(column.getDouble(from + i))
          i += 1
        }
      case _ =>
        while (i < rows) {
          to(at + i) = word(kind, dataType, column, from + i)
          i += 1
        }
    }
  }

  /** Whether a word has more bits than an Int. */
  def isLong(kind: Int): Boolean = kind == Longs || kind == Doubles || kind == Decimals

  /**
   * A word that is equal for equal values, as Spark hashes them: one for both zeros, one for all
   * NaNs.
   */
  def comparable(kind: Int, word: Long): Long = (kind: @switch) match {
    case Floats =>
      val value = java.lang.Float.intBitsToFloat(word.toInt)
      if (value == 0.0f) 0 else java.lang.Float.floatToIntBits(value)
    case Doubles =>
      val value = java.lang.Double.longBitsToDouble(word)
      if (value == 0.0) 0L else java.lang.Double.doubleToLongBits(value)
    case _ => word
  }

  /** The bits of a word that a row's eight bytes use; the others are zero. */
  def mask(kind: Int): Long = (kind: @switch) match {
    case Bytes => 0xffL
    case Shorts => 0xffffL
    case Ints | Floats => 0xffffffffL
    case _ => -1L
  }
}
