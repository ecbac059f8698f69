package io.github.skewext.join.range

import java.math.{BigDecimal => JavaDecimal}

import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, Literal}
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types._

/**
 * One end of the interval of a row: the value of an expression over one side, moved by a constant.
 *
 * @param kind how values become keys, whose order is that of the values.
 * @param move null if the value itself is the end.
 * @param ofNull the key of a null; None if a row with a null matches nothing.
 */
private[skewext] case class RangeBound(
    value: Expression,
    kind: RangeKind,
    move: Move = null,
    ofNull: Option[Long] = None) {

  def map(f: Expression => Expression): RangeBound = copy(value = f(value))

  /** Whether a null is below, or above, all values of the other side. */
  def isOpenDown: Boolean = ofNull.contains(Long.MinValue)
  def isOpenUp: Boolean = ofNull.contains(Long.MaxValue)

  /** Whether the value is null where the expression is. */
  def isNullWith(e: Expression): Boolean = {
    def isNull(of: Expression): Boolean = of.semanticEquals(e) || (of match {
      case cast: Cast => isNull(cast.child)
      case _ => false
    })
    isNull(value)
  }
}

private[skewext] object RangeBound {

  /** The end of an interval without a lower end, and of one without an upper end. */
  val Lowest: RangeBound = RangeBound(Literal(Long.MinValue), RangeKind.LongKind)
  val Highest: RangeBound = RangeBound(Literal(Long.MaxValue), RangeKind.LongKind)
}

/**
 * The ends of the interval of a row, which contains both. Of a point, they are the same.
 *
 * @param keys which must be equal, too, for rows to match; none in most range joins.
 */
private[skewext] case class RangeEnds(lo: RangeBound, hi: RangeBound, keys: Seq[Expression] = Nil) {

  def map(f: Expression => Expression): RangeEnds = RangeEnds(lo.map(f), hi.map(f), keys.map(f))

  /** Whether each interval contains one value only, or null. */
  def isPoint: Boolean = lo.copy(ofNull = None) == hi.copy(ofNull = None)

  def isWithoutLower: Boolean = lo == RangeBound.Lowest

  def hasBytes: Boolean = lo.kind == RangeKind.BytesKind || hi.kind == RangeKind.BytesKind

  /** Whether both ends are the same column, each moved by its own constant. */
  def isOfOneColumn: Boolean =
    lo.value.references.size == 1 && lo.value.references == hi.value.references
}

/**
 * A constant that is added to a value. It is the other side of a difference, as in
 * `abs(a.x - b.x) <= 3`. There, Spark adds nothing to a value, so the sum must not overflow as
 * Spark's sums do.
 */
private[skewext] sealed trait Move

private[skewext] object Move {

  /**
   * For whole numbers. Differences of values overflow only if one of them is not below `limit`. For
   * such a value, the end of the interval is unknown.
   */
  case class Whole(by: Long, limit: Long) extends Move

  /**
   * For floating-point numbers. A sum is rounded, so the next number in a direction is the end: 1 for
   * an upper end, -1 for a lower one, 0 for a value that does not move.
   */
  case class Floating(by: Double, direction: Int) extends Move

  /** For decimals whose difference is exact, in the scale of `WideDecimalKind`. */
  case class Exact(by: JavaDecimal) extends Move
}

/** How a value becomes a key of 64 bits. Keys of values have their order, or are equal. */
private[skewext] sealed trait RangeKind {

  /** Kinds with one line have keys that can be compared with each other. */
  def line: RangeKind = this
}

private[skewext] object RangeKind {
  case object IntKind extends RangeKind {
    override def line: RangeKind = LongKind
  }
  case object LongKind extends RangeKind
  case object DoubleKind extends RangeKind
  case class DecimalKind(precision: Int, scale: Int) extends RangeKind

  /** @param scale in which values are compared. */
  case class WideDecimalKind(precision: Int, ownScale: Int, scale: Int) extends RangeKind
  case object BytesKind extends RangeKind

  /** The bound of a value in the order in which Spark compares values of its type. */
  def boundOf(value: Expression): Option[RangeBound] = value.dataType match {
    case ByteType | ShortType => Some(RangeBound(Cast(value, IntegerType), IntKind))
    case IntegerType | DateType | _: YearMonthIntervalType => Some(RangeBound(value, IntKind))
    case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType =>
      Some(RangeBound(value, LongKind))
    case FloatType => Some(RangeBound(Cast(value, DoubleType), DoubleKind))
    case DoubleType => Some(RangeBound(value, DoubleKind))
    case d: DecimalType if d.precision <= Decimal.MAX_LONG_DIGITS =>
      Some(RangeBound(value, DecimalKind(d.precision, d.scale)))
    case d: DecimalType =>
      Some(RangeBound(value, WideDecimalKind(d.precision, d.scale, d.scale)))
    case StringType | BinaryType => Some(RangeBound(value, BytesKind))
    case other if SparkShims.isTime(other) => Some(RangeBound(value, LongKind))
    case _ => None
  }
}
