package io.github.skewext.multijoin

import java.lang.reflect.Field

import scala.annotation.switch
import scala.util.Try

import io.github.skewext.RowBytes

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.datasources.parquet.ParquetDictionary
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.execution.{ColumnarToRowExec, FileSourceScanExec, InputAdapter, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.bitset.BitSetMethods
import org.apache.spark.unsafe.types.UTF8String

/**
 * The rows of a scan that gives batches of columns, as Spark's generated code makes them, but for
 * strings that a Parquet file has in a dictionary: Spark makes an array of bytes for every row of
 * them, which is a fifth of what a merge of sorted tables costs. Here each value of a dictionary is
 * made once. All rows are one object.
 */
private[multijoin] final class BatchRows(
    types: Array[DataType],
    batches: Iterator[ColumnarBatch],
    numRows: SQLMetric,
    numBatches: SQLMetric)
    extends Iterator[InternalRow] {
  import BatchRows._

  private[this] val n = types.length
  private[this] val kinds = types.map(BatchRows.kinds)
  private[this] val bitSetBytes = UnsafeRow.calculateBitSetWidthInBytes(n)
  private[this] val fixedBytes = bitSetBytes + 8 * n
  private[this] val row = new UnsafeRow(n)
  private[this] var buffer = new Array[Byte](fixedBytes + 64 * n)

  /** Where in the buffer the next bytes of varying length go. */
  private[this] var position = 0L

  private[this] val columns = new Array[ColumnVector](n)
  private[this] val nullable = new Array[Boolean](n)
  private[this] val texts = Array.fill(n)(new DictionaryTexts)
  private[this] var size = 0
  private[this] var upcoming = 0

  override def hasNext: Boolean = {
    while (upcoming == size && batches.hasNext) open(batches.next())
    upcoming < size
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    make(upcoming)
    upcoming += 1
    row
  }

  private def open(batch: ColumnarBatch): Unit = {
    size = batch.numRows
    upcoming = 0
    numRows += size.toLong
    numBatches += 1
    var c = 0
    while (c < n) {
      columns(c) = batch.column(c)
      nullable(c) = columns(c).hasNull
      if (kinds(c) == Text) texts(c).open(columns(c))
      c += 1
    }
  }

  private def make(r: Int): Unit = {
    var bits = 0
    while (bits < bitSetBytes) {
      Platform.putLong(buffer, Start + bits, 0L)
      bits += 8
    }
    position = Start + fixedBytes
    var c = 0
    while (c < n) {
      val column = columns(c)
      if (nullable(c) && column.isNullAt(r)) {
        BitSetMethods.set(buffer, Start, c)
        putWord(c, 0L)
      } else {
        put(c, column, r)
      }
      c += 1
    }
    row.pointTo(buffer, Start, (position - Start).toInt)
  }

  private def put(c: Int, column: ColumnVector, r: Int): Unit = (kinds(c): @switch) match {
    case Int64 => putWord(c, column.getLong(r))
    case Text =>
      val place = texts(c).place(r)
      if (place == DictionaryTexts.NotKept) {
        putText(c, column.getUTF8String(r))
      } else {
        val bytes = place.toInt
        val padded = (bytes + 7) & ~7
        makeRoom(padded)
        RowBytes.copy(texts(c).bytes, Start + (place >>> 32), buffer, position, padded)
        putVarying(c, bytes, padded)
      }
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

private[skewext] object BatchRows {
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
  }

  /** The rows of a plan that is one of Spark's scans, if all columns are of simple types. */
  def of(plan: SparkPlan): Option[RDD[InternalRow]] = plan match {
    case WholeStageCodegenExec(rows: ColumnarToRowExec) => of(rows)
    case rows: ColumnarToRowExec if rows.output.forall(a => kinds.isDefinedAt(a.dataType)) =>
      rows.child match {
        case scan: FileSourceScanExec => Some(of(scan, rows))
        case InputAdapter(scan: FileSourceScanExec) => Some(of(scan, rows))
        case _ => None
      }
    case _ => None
  }

  private def of(scan: FileSourceScanExec, rows: ColumnarToRowExec): RDD[InternalRow] = {
    val types = rows.output.map(_.dataType).toArray
    val numRows = rows.metrics("numOutputRows")
    val numBatches = rows.metrics("numInputBatches")
    scan.executeColumnar().mapPartitions(new BatchRows(types, _, numRows, numBatches))
  }
}

/**
 * The strings of a dictionary that a column of a batch has, in one array of bytes: each is made when
 * it is met first. Rows meet them in no order, so they are kept close together.
 */
private[multijoin] final class DictionaryTexts {
  import DictionaryTexts._

  var bytes: Array[Byte] = new Array[Byte](256)
  private[this] var used = 0

  private[this] var column: ColumnVector = _

  /** The numbers of the strings in the dictionary, or null if there is none that we know. */
  private[this] var ids: WritableColumnVector = _
  private[this] var dictionary: AnyRef = _

  /** Of every number, where in `bytes` the string is, and how long; or `NotKept`. */
  private[this] var places = new Array[Long](0)

  def open(next: ColumnVector): Unit = {
    column = next
    val found = dictionaryOf(next)
    // Every row group of a file has another dictionary.
    if (found ne dictionary) {
      java.util.Arrays.fill(places, NotKept)
      used = 0
    }
    dictionary = found
    ids = next match {
      case vector: WritableColumnVector if found != null => vector.getDictionaryIds
      case _ => null
    }
  }

  /** Where the string of a row is, as offset and length; `NotKept` if only the column knows it. */
  def place(r: Int): Long = if (ids == null) {
    NotKept
  } else {
    val id = ids.getDictId(r)
    if (id < places.length && places(id) != NotKept) places(id)
    else keep(id, column.getUTF8String(r))
  }

  private def keep(id: Int, text: UTF8String): Long = {
    val size = text.numBytes
    val padded = (size + 7) & ~7
    if (id >= MaxKept || used + padded.toLong > MaxBytes) {
      NotKept
    } else {
      if (id >= places.length) {
        val before = places.length
        places = java.util.Arrays.copyOf(places, math.max(256, 2 * id))
        java.util.Arrays.fill(places, before, places.length, NotKept)
      }
      if (used + padded > bytes.length) {
        bytes = java.util.Arrays.copyOf(bytes, 2 * (used + padded))
      }
      java.util.Arrays.fill(bytes, used + size, used + padded, 0.toByte)
      text.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + used)
      places(id) = (used.toLong << 32) | size
      used += padded
      places(id)
    }
  }
}

private[multijoin] object DictionaryTexts {
  val NotKept: Long = -1L

  // Some more than the page of a dictionary usually has.
  private val MaxKept = 1 << 17
  private val MaxBytes = 1L << 21

  // Spark does not show a column's dictionary, and wraps it anew for every batch. Where it cannot
  // be seen, strings are made for every row.
  private val ofColumn = field(classOf[WritableColumnVector], "dictionary")
  private val wrapped = field(classOf[ParquetDictionary], "dictionary")

  def canBeSeen: Boolean = ofColumn.isDefined && wrapped.isDefined

  private def field(of: Class[_], name: String): Option[Field] = Try {
    val found = of.getDeclaredField(name)
    found.setAccessible(true)
    found
  }.toOption

  private def dictionaryOf(column: ColumnVector): AnyRef = column match {
    case vector: WritableColumnVector if vector.hasDictionary =>
      val dictionary = for {
        outer <- ofColumn
        inner <- wrapped
        parquet <- Option(outer.get(vector)) if parquet.isInstanceOf[ParquetDictionary]
      } yield inner.get(parquet)
      dictionary.orNull
    case _ => null
  }
}
