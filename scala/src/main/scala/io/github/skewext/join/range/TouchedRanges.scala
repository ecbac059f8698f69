package io.github.skewext.join.range

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.trees.{BinaryLike, TernaryLike}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types._

/** Reads the interval of a row. */
private[range] trait OfInterval extends Expression with CodegenFallback {

  /** The values of its ends. */
  protected def lo: Expression
  protected def hi: Expression

  /** How values become keys. Its own values have no meaning. */
  protected def form: RangeEnds

  override def nullable: Boolean = true

  @transient protected lazy val keys: RangeKeys =
    new RangeKeys(RangeEnds(form.lo.copy(value = lo), form.hi.copy(value = hi)))
}

/** The key of the lower end of an interval; null if the row has no interval. */
private[range] case class LowerKey(lo: Expression, hi: Expression, form: RangeEnds)
    extends OfInterval
    with BinaryLike[Expression] {

  override def left: Expression = lo
  override def right: Expression = hi

  override def dataType: DataType = LongType

  override def eval(row: InternalRow): Any = if (keys.read(row)) keys.lo else null

  override protected def withNewChildrenInternal(
      newLeft: Expression,
      newRight: Expression): LowerKey = copy(lo = newLeft, hi = newRight)
}

/**
 * The numbers of the ranges that an interval touches, in ascending order; null if the row has no
 * interval. The first one is the range of the lower end, and the only one if the upper end is not
 * above it.
 *
 * @param sample lower keys of some rows, in any order. Quantiles of them are the bounds of ranges.
 * @param number of ranges, at most.
 */
private[range] case class TouchedRanges(
    lo: Expression,
    hi: Expression,
    sample: Expression,
    form: RangeEnds,
    number: Int)
    extends OfInterval
    with TernaryLike[Expression] {

  override def first: Expression = lo
  override def second: Expression = hi
  override def third: Expression = sample

  override def dataType: DataType = ArrayType(IntegerType, containsNull = false)

  @transient private lazy val bounds: Array[Long] = {
    val sampled = sample.eval() match {
      case found: ArrayData => found.toLongArray()
      case _ => Array.emptyLongArray
    }
    TouchedRanges.bounds(sampled, number)
  }

  override def eval(row: InternalRow): Any = if (keys.read(row)) {
    val from = TouchedRanges.numberOf(keys.lo, bounds)
    val until = math.max(from, TouchedRanges.numberOf(keys.hi, bounds))
    new GenericArrayData(Array.range(from, until + 1))
  } else {
    null
  }

  override protected def withNewChildrenInternal(
      newFirst: Expression,
      newSecond: Expression,
      newThird: Expression): TouchedRanges =
    copy(lo = newFirst, hi = newSecond, sample = newThird)
}

private[range] object TouchedRanges {

  /** Quantiles of the sample: the same for the same keys in any order. */
  def bounds(sample: Array[Long], number: Int): Array[Long] = {
    val sorted = sample.distinct.sorted
    (1 until number)
      .map(i => (i.toLong * sorted.length / number).toInt)
      .filter(_ > 0)
      .distinct
      .map(sorted(_))
      .toArray
  }

  /** The number of bounds that are at most the key. */
  def numberOf(key: Long, bounds: Array[Long]): Int = {
    val found = java.util.Arrays.binarySearch(bounds, key)
    if (found >= 0) found + 1 else -(found + 1)
  }
}
