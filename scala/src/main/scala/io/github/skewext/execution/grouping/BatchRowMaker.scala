package io.github.skewext.execution.grouping

import scala.annotation.switch

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.bitset.BitSetMethods
import org.apache.spark.unsafe.types.UTF8String

/**
 * Makes rows of a batch's columns, as Spark's generated code makes them, but only those that somebody
 * asks for.
 *
 * @param types those of the row's columns
 * @param ordinals which column of the batch each is
 */
private[skewext] final class BatchRowMaker(types: Array[DataType], ordinals: Array[Int]) {
  import BatchRowMaker._

  val numColumns: Int = types.length

  private[this] val kinds = types.map(BatchRowMaker.kinds)
  private[this] val bitSetBytes = UnsafeRow.calculateBitSetWidthInBytes(numColumns)
  private[this] val fixedBytes = bitSetBytes + 8 * numColumns

  /** Where rows are made now, and where in it the next bytes of varying length go. */
  private[this] var place: Place = _
  private[this] var buffer: Array[Byte] = _
  private[this] var position = 0L

  private[this] val columns = new Array[ColumnVector](numColumns)
  private[this] val nullable = new Array[Boolean](numColumns)

  def open(batch: ColumnarBatch): Unit = {
    var c = 0
    while (c < numColumns) {
      columns(c) = batch.column(ordinals(c))
      nullable(c) = columns(c).hasNull
      c += 1
    }
  }

  /** Of the batch that is open. It stays as it is, also when others are opened. */
  def make(r: Int, in: Place): UnsafeRow = {
    place = in
    buffer = in.buffer
    var bits = 0
    while (bits < bitSetBytes) {
      Platform.putLong(buffer, Start + bits, 0L)
      bits += 8
    }
    position = Start + fixedBytes
    var c = 0
    while (c < numColumns) {
      val column = columns(c)
      if (nullable(c) && column.isNullAt(r)) {
        BitSetMethods.set(buffer, Start, c)
        putWord(c, 0L)
      } else {
        put(c, column, r)
      }
      c += 1
    }
    place.row.pointTo(buffer, Start, (position - Start).toInt)
    place.row
  }

  /** A column of the open batch. */
  def column(c: Int): ColumnVector = columns(c)

  /** A string of the open batch, or the bytes of a binary value. */
  def text(c: Int, r: Int): UTF8String =
    if (kinds(c) == Text) columns(c).getUTF8String(r)
    else UTF8String.fromBytes(columns(c).getBinary(r))

  private def put(c: Int, column: ColumnVector, r: Int): Unit = (kinds(c): @switch) match {
    case Int64 => putWord(c, column.getLong(r))
    case Text => putText(c, column.getUTF8String(r))
    case Int32 => Platform.putInt(buffer, cleared(c), column.getInt(r))
    case Float64 => Platform.putDouble(buffer, cleared(c), column.getDouble(r))
    case Float32 => Platform.putFloat(buffer, cleared(c), column.getFloat(r))
    case Bit => Platform.putBoolean(buffer, cleared(c), column.getBoolean(r))
    case Int16 => Platform.putShort(buffer, cleared(c), column.getShort(r))
    case Int8 => Platform.putByte(buffer, cleared(c), column.getByte(r))
    case Unscaled =>
      val decimal = types(c).asInstanceOf[DecimalType]
      putWord(c, column.getDecimal(r, decimal.precision, decimal.scale).toUnscaledLong)
    case Binary => putText(c, UTF8String.fromBytes(column.getBinary(r)))
  }

  private def putText(c: Int, text: UTF8String): Unit = {
    val bytes = text.numBytes
    val padded = (bytes + 7) & ~7
    makeRoom(padded)
    if (bytes != padded) Platform.putLong(buffer, position + padded - 8, 0L)
    text.writeToMemory(buffer, position)
    putVarying(c, bytes, padded)
  }

  private def putVarying(c: Int, bytes: Int, padded: Int): Unit = {
    putWord(c, ((position - Start) << 32) | bytes)
    position += padded
  }

  private def makeRoom(bytes: Int): Unit = {
    val needed = position - Start + bytes
    if (needed > buffer.length) {
      require(needed <= MaxBytes, s"A row of the scan would have $needed bytes.")
      buffer = java.util.Arrays.copyOf(buffer, math.min(MaxBytes, 2 * needed).toInt)
      place.buffer = buffer
    }
  }

  private def address(c: Int): Long = Start + bitSetBytes + (c.toLong << 3)

  private def putWord(c: Int, word: Long): Unit = Platform.putLong(buffer, address(c), word)

  /** Values of less than a word leave the rest of it zero. */
  private def cleared(c: Int): Long = {
    putWord(c, 0L)
    address(c)
  }
}

private[skewext] object BatchRowMaker {

  /** Where a row is made; the next one that is made there takes its place. */
  final class Place(numColumns: Int) {
    private[BatchRowMaker] val row = new UnsafeRow(numColumns)
    private[BatchRowMaker] var buffer =
      new Array[Byte](UnsafeRow.calculateBitSetWidthInBytes(numColumns) + 72 * numColumns)
  }

  /** Whether rows can have a column of the type. */
  def makes(dataType: DataType): Boolean = kinds.isDefinedAt(dataType)

  private val Start = Platform.BYTE_ARRAY_OFFSET.toLong
  private val MaxBytes = (Int.MaxValue - 15).toLong

  private final val Text = 0
  private final val Binary = 1
  private final val Bit = 2
  private final val Int8 = 3
  private final val Int16 = 4
  private final val Int32 = 5
  private final val Int64 = 6
  private final val Float32 = 7
  private final val Float64 = 8
  private final val Unscaled = 9

  private val kinds: PartialFunction[DataType, Int] = {
    case StringType => Text
    case BinaryType => Binary
    case BooleanType => Bit
    case ByteType => Int8
    case ShortType => Int16
    case IntegerType | DateType | _: YearMonthIntervalType => Int32
    case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType => Int64
    case FloatType => Float32
    case DoubleType => Float64
    case d: DecimalType if d.precision <= Decimal.MAX_LONG_DIGITS => Unscaled
    case other if SparkShims.isTime(other) => Int64
  }
}
