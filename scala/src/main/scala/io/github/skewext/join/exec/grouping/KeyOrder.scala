package io.github.skewext.join.exec.grouping

import scala.annotation.switch

import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.catalyst.expressions.{Ascending, BaseOrdering, BoundReference, Expression, SortOrder, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators.{DoublePrefixComparator, StringPrefixComparator}

/**
 * Ascending order of keys, nulls first, as in Spark's sorts. Inputs that are merged by key have
 * this order. Of two keys, the one with the lower prefix is the lower one. If prefixes are equal,
 * `compare` decides. Not thread-safe.
 */
private[skewext] abstract class KeyOrder extends Serializable {

  /**
   * The sort prefix of the row's key, a signed number. It is `NullPrefix` if the first key column
   * is null.
   */
  def prefix(input: Int, row: UnsafeRow): Long

  /** Whether keys with equal prefixes are equal and contain no null, except for `NullPrefix`. */
  def prefixIsKey: Boolean

  /** Whether all keys with this prefix are equal, so that `compare` is not needed. */
  final def saysAll(prefix: Long): Boolean = prefixIsKey && prefix != KeyOrder.NullPrefix

  /** Whether a key with this prefix may contain a null. */
  def mayHaveNull(prefix: Long): Boolean

  def compare(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Int
}

private[skewext] object KeyOrder {

  /** The lowest prefix. Keys without a null may have it, too. */
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

/**
 * Order of keys that are columns of simple types. It compares them in the rows, without a
 * projection.
 */
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

  /** A number that sorts like the value. */
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

  // Spark compares prefixes of these types as unsigned numbers.
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

  /** How columns of a type are compared. Undefined for types that need a generated ordering. */
  val kinds: PartialFunction[DataType, Int] = {
    // Both are compared as unsigned bytes.
    case StringType | BinaryType => Bytes
    case BooleanType => Bit
    case ByteType => Int8
    case ShortType => Int16
    case IntegerType | DateType | _: YearMonthIntervalType => Int32
    case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType => Int64
    // All values of a column have one scale, so their unscaled values have the same order.
    case d: DecimalType if d.precision <= Decimal.MAX_LONG_DIGITS => Unscaled
    case FloatType => Float32
    case DoubleType => Float64
    case other if SparkShims.isTime(other) => Int64
  }
}

/**
 * Order of keys that are expressions or have other types. It projects both keys and compares them.
 */
private final class ComputedOrder(keys: Seq[Seq[Expression]], ofKeys: KeyOrder) extends KeyOrder {

  @transient private[this] lazy val projections = keys.map(UnsafeProjection.create(_)).toArray
  // A projection reuses its result row, so comparing two rows of one input needs two projections.
  @transient private[this] lazy val others = keys.map(UnsafeProjection.create(_)).toArray

  override def prefixIsKey: Boolean = ofKeys.prefixIsKey

  override def mayHaveNull(prefix: Long): Boolean = ofKeys.mayHaveNull(prefix)

  override def prefix(input: Int, row: UnsafeRow): Long =
    ofKeys.prefix(input, projections(input)(row))

  override def compare(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Int =
    ofKeys.compare(inputA, projections(inputA)(a), inputB, others(inputB)(b))
}

/** Order of projected keys of any types, with Spark's generated ordering and without prefixes. */
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
