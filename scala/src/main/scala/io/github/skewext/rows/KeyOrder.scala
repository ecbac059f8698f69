package io.github.skewext.rows

import scala.annotation.switch

import io.github.skewext.facts.EvaluatedInTurn
import io.github.skewext.shuffle.ColumnCell
import io.github.skewext.shuffle.ColumnCell._

import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.catalyst.expressions.{Ascending, BaseOrdering, BoundReference, Expression, SortOrder, UnsafeRow}
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

  /** The same order for one iterator, as with [[JoinKeys]]. */
  def own: KeyOrder = this

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
    val kinds = types.flatMap(ColumnOrder.kindOf(_)).toArray
    if (kinds.length < types.size) {
      new ComputedOrder(keys, new GeneratedOrder(types))
    } else if (keys.forall(_.forall(_.isInstanceOf[BoundReference]))) {
      new ColumnOrder(
        keys.map(_.collect { case BoundReference(ordinal, _, _) => ordinal }.toArray).toArray,
        kinds)
    } else {
      new ComputedOrder(keys, new ColumnOrder(Array.fill(keys.size)(types.indices.toArray), kinds))
    }
  }
}

/**
 * Order of keys that are columns of simple types. It compares them in the rows, without a
 * projection.
 */
private final class ColumnOrder(ordinals: Array[Array[Int]], kinds: Array[Int]) extends KeyOrder {
  override val prefixIsKey: Boolean = kinds.length == 1 && !isBytes(kinds(0))

  override def mayHaveNull(prefix: Long): Boolean =
    kinds.length > 1 || prefix == KeyOrder.NullPrefix

  override def prefix(input: Int, row: UnsafeRow): Long = {
    val ordinal = ordinals(input)(0)
    if (row.isNullAt(ordinal)) {
      KeyOrder.NullPrefix
    } else if (isBytes(kinds(0))) {
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
    // Strings and binaries are both compared as unsigned bytes.
    else if (isBytes(kind)) SparkShims.compare(a.getUTF8String(i), b.getUTF8String(j))
    else java.lang.Long.compare(number(kind, a, i), number(kind, b, j))
  }

  /** A number that sorts like the value. */
  private def number(kind: Int, row: UnsafeRow, ordinal: Int): Long = (kind: @switch) match {
    case Booleans => if (row.getBoolean(ordinal)) 1L else 0L
    case Bytes => row.getByte(ordinal).toLong
    case Shorts => row.getShort(ordinal).toLong
    case Ints => row.getInt(ordinal).toLong
    // All decimals of a column have one scale, so their unscaled values have the same order.
    case Longs | Decimals => row.getLong(ordinal)
    case Floats => signed(DoublePrefixComparator.computePrefix(row.getFloat(ordinal).toDouble))
    case Doubles => signed(DoublePrefixComparator.computePrefix(row.getDouble(ordinal)))
  }

  private def textPrefix(text: UTF8String): Long =
    signed(StringPrefixComparator.computePrefix(text))

  // Spark compares prefixes of these types as unsigned numbers.
  private def signed(unsigned: Long): Long = unsigned ^ Long.MinValue
}

private object ColumnOrder {

  /** How columns of a type are compared. None for types that need a generated ordering. */
  def kindOf(dataType: DataType): Option[Int] = dataType match {
    case string: StringType if string != StringType => None
    case other if SparkShims.isTime(other) => Some(Longs)
    case other => ColumnCell.kindOf(other)
  }
}

/**
 * Order of keys that are expressions or have other types. It projects both keys and compares them.
 */
private final class ComputedOrder(keys: Seq[Seq[Expression]], ofKeys: KeyOrder) extends KeyOrder {

  @transient private[this] lazy val projections = keys.map(EvaluatedInTurn.projection).toArray
  // A projection reuses its result row, so comparing two rows of one input needs two projections.
  @transient private[this] lazy val others = keys.map(EvaluatedInTurn.projection).toArray

  override def own: KeyOrder = new ComputedOrder(keys, ofKeys.own)

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

  override def own: KeyOrder = new GeneratedOrder(types)

  override def prefixIsKey: Boolean = false

  override def mayHaveNull(prefix: Long): Boolean = true

  override def prefix(input: Int, row: UnsafeRow): Long = KeyOrder.NullPrefix

  override def compare(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Int =
    ordering.compare(a, b)
}
