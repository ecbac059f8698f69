package io.github.skewext.execution.grouping

import scala.annotation.switch

import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.catalyst.expressions.{Ascending, BaseOrdering, BoundReference, Expression, SortOrder, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators.{DoublePrefixComparator, StringPrefixComparator}

/**
 * The ascending order of keys that each input's rows come in, nulls first, as Spark sorts them. A
 * prefix says most of it in one comparison of numbers: of two keys the one with the lower prefix is
 * the lower one; where prefixes are equal, `compare` decides. Not thread-safe.
 */
private[skewext] abstract class KeyOrder extends Serializable {

  /** Of the row's key, in the order of signed numbers. `NullPrefix` if the first column is null. */
  def prefix(input: Int, row: UnsafeRow): Long

  /** Whether keys of one prefix are equal, unless it is `NullPrefix`, and have no null. */
  def prefixIsKey: Boolean

  /** Whether all keys of the prefix are equal. */
  final def saysAll(prefix: Long): Boolean = prefixIsKey && prefix != KeyOrder.NullPrefix

  /** Whether a key of this prefix may have a null in it. */
  def mayHaveNull(prefix: Long): Boolean

  def compare(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Int
}

private[skewext] object KeyOrder {

  /** The lowest one. Keys that are not null may have it as well. */
  val NullPrefix: Long = Long.MinValue

  /** @param keys the key expressions of each input, bound to its rows */
  def apply(keys: Seq[Seq[Expression]]): KeyOrder = {
    val types = keys.head.map(_.dataType)
    val inPlace = keys.forall(_.forall(_.isInstanceOf[BoundReference]))
    if (inPlace && types.forall(ColumnOrder.kinds.isDefinedAt)) {
      new ColumnOrder(
        keys.map(_.collect { case BoundReference(ordinal, _, _) => ordinal }.toArray).toArray,
        types.map(ColumnOrder.kinds).toArray)
    } else if (types.forall(ColumnOrder.kinds.isDefinedAt)) {
      new ComputedOrder(
        keys,
        new ColumnOrder(
          Array.fill(keys.size)(types.indices.toArray),
          types.map(ColumnOrder.kinds).toArray))
    } else {
      new ComputedOrder(keys, new GeneratedOrder(types))
    }
  }
}

/** Keys that are columns of simple types: compared where they stand in the rows. */
private final class ColumnOrder(ordinals: Array[Array[Int]], kinds: Array[Int]) extends KeyOrder {
  import ColumnOrder._

  override val prefixIsKey: Boolean = kinds.length == 1 && kinds(0) != Bytes

  override def mayHaveNull(prefix: Long): Boolean =
    kinds.length > 1 || prefix == KeyOrder.NullPrefix

  override def prefix(input: Int, row: UnsafeRow): Long = {
    val ordinal = ordinals(input)(0)
    if (row.isNullAt(ordinal)) {
      KeyOrder.NullPrefix
    } else if (kinds(0) == Bytes) {
      textPrefix(row.getUTF8String(ordinal))
    } else {
      number(kinds(0), row, ordinal)
    }
  }

  override def compare(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Int = {
    val columnsA = ordinals(inputA)
    val columnsB = ordinals(inputB)
    var k = 0
    while (k < kinds.length) {
      val c = compareColumn(kinds(k), a, columnsA(k), b, columnsB(k))
      if (c != 0) return c
      k += 1
    }
    0
  }

  private def compareColumn(kind: Int, a: UnsafeRow, i: Int, b: UnsafeRow, j: Int): Int = {
    val nullA = a.isNullAt(i)
    val nullB = b.isNullAt(j)
    if (nullA || nullB) java.lang.Boolean.compare(nullB, nullA)
    else if (kind == Bytes) SparkShims.compare(a.getUTF8String(i), b.getUTF8String(j))
    else java.lang.Long.compare(number(kind, a, i), number(kind, b, j))
  }

  /** The value as a number that is in order as the values are. */
  private def number(kind: Int, row: UnsafeRow, ordinal: Int): Long = (kind: @switch) match {
    case Bit => if (row.getBoolean(ordinal)) 1L else 0L
    case Int8 => row.getByte(ordinal).toLong
    case Int16 => row.getShort(ordinal).toLong
    case Int32 => row.getInt(ordinal).toLong
    case Int64 | Unscaled => row.getLong(ordinal)
    case Float32 => signed(DoublePrefixComparator.computePrefix(row.getFloat(ordinal).toDouble))
    case Float64 => signed(DoublePrefixComparator.computePrefix(row.getDouble(ordinal)))
  }

  private def textPrefix(text: UTF8String): Long =
    signed(StringPrefixComparator.computePrefix(text))

  // Spark's prefixes of these are in the order of unsigned numbers.
  private def signed(unsigned: Long): Long = unsigned ^ Long.MinValue
}

private object ColumnOrder {
  final val Bytes = 0
  final val Bit = 1
  final val Int8 = 2
  final val Int16 = 3
  final val Int32 = 4
  final val Int64 = 5
  final val Float32 = 6
  final val Float64 = 7
  final val Unscaled = 8

  /** How columns are compared; not defined for types that take more than that. */
  val kinds: PartialFunction[DataType, Int] = {
    // Both are compared byte by byte, without signs.
    case StringType | BinaryType => Bytes
    case BooleanType => Bit
    case ByteType => Int8
    case ShortType => Int16
    case IntegerType | DateType | _: YearMonthIntervalType => Int32
    case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType => Int64
    // A column has one scale, so its numbers without the point are in the same order.
    case d: DecimalType if d.precision <= Decimal.MAX_LONG_DIGITS => Unscaled
    case FloatType => Float32
    case DoubleType => Float64
    case other if SparkShims.isTime(other) => Int64
  }
}

/** Keys that are expressions, or of types without a short way: projected, and then compared. */
private final class ComputedOrder(keys: Seq[Seq[Expression]], ofKeys: KeyOrder) extends KeyOrder {

  @transient private[this] lazy val projections = keys.map(UnsafeProjection.create(_)).toArray
  // Two rows of one input can be compared, and a projection has one result row.
  @transient private[this] lazy val others = keys.map(UnsafeProjection.create(_)).toArray

  override def prefixIsKey: Boolean = ofKeys.prefixIsKey

  override def mayHaveNull(prefix: Long): Boolean = ofKeys.mayHaveNull(prefix)

  override def prefix(input: Int, row: UnsafeRow): Long =
    ofKeys.prefix(input, projections(input)(row))

  override def compare(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Int =
    ofKeys.compare(inputA, projections(inputA)(a), inputB, others(inputB)(b))
}

/** Rows that are keys, of any types. */
private final class GeneratedOrder(types: Seq[DataType]) extends KeyOrder {

  @transient private[this] lazy val ordering: BaseOrdering =
    GenerateOrdering.generate(types.zipWithIndex.map { case (dataType, j) =>
      SortOrder(BoundReference(j, dataType, nullable = true), Ascending)
    })

  override def prefixIsKey: Boolean = false

  override def mayHaveNull(prefix: Long): Boolean = true

  override def prefix(input: Int, row: UnsafeRow): Long = KeyOrder.NullPrefix

  override def compare(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Int =
    ordering.compare(a, b)
}
