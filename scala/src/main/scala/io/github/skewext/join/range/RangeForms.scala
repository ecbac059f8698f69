package io.github.skewext.join.range

import io.github.skewext.join.range.RangeKind._

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

/**
 * Recognizes comparisons of a value of one side with a value of the other side:
 *  - `a < b`, `a <= b`, `a > b`, `a >= b`, where `a` and `b` are any expressions over one side;
 *  - `a - b <= c` and `datediff(a, b) <= c` with a constant `c`, and the same with `abs`;
 *  - each of these, or several joined by AND, or `b IS NULL`, for an interval that is open at one end.
 */
private[range] final class RangeForms(sides: Seq[AttributeSet]) {

  def in(condition: Expression): Seq[AtMost] = condition match {
    case And(a, b) => in(a) ++ in(b)
    case LessThan(a, b) => atMost(a, b)
    case LessThanOrEqual(a, b) => atMost(a, b)
    case GreaterThan(a, b) => atMost(b, a)
    case GreaterThanOrEqual(a, b) => atMost(b, a)
    case Or(IsNull(end), comparison) => in(comparison).flatMap(_.open(end))
    case Or(comparison, IsNull(end)) => in(comparison).flatMap(_.open(end))
    case _ => Nil
  }

  private def atMost(lower: Expression, upper: Expression): Seq[AtMost] = (lower, upper) match {
    case (Abs(Difference(a, b), _), Constant(c)) =>
      differenceAtMost(a, b, c).toSeq ++ Constant
        .negated(c)
        .toSeq
        .flatMap(differenceAtLeast(a, b, _))
    case (Difference(a, b), Constant(c)) => differenceAtMost(a, b, c).toSeq
    case (Constant(c), Difference(a, b)) => differenceAtLeast(a, b, c).toSeq
    case _ => compared(lower, upper).toSeq
  }

  private def compared(lower: Expression, upper: Expression): Option[AtMost] =
    if (lower.dataType != upper.dataType) None
    else {
      for (side <- sideOf(lower, upper); lo <- boundOf(lower); hi <- boundOf(upper))
        yield AtMost(side, lo, hi)
    }

  /** The side of `a`, if `b` is over the other one. */
  private def sideOf(a: Expression, b: Expression): Option[Int] =
    sideOf(a).filter(side => sideOf(b).contains(1 - side))

  private def sideOf(e: Expression): Option[Int] =
    if (!e.deterministic || e.references.isEmpty || SubqueryExpression.hasSubquery(e) ||
      e.exists(_.isInstanceOf[PlanExpression[_]])) {
      None
    } else {
      Some(sides.indexWhere(e.references.subsetOf)).filter(_ >= 0)
    }

  /** `a - b <= c`: `a` is at most `b + c`. */
  private def differenceAtMost(a: Expression, b: Expression, c: Any): Option[AtMost] =
    sideOf(a, b).flatMap { side =>
      moved(a, b, c, 1).map { case (lo, hi) => AtMost(side, lo, hi) }
    }

  /** `c <= a - b`: `b + c` is at most `a`. */
  private def differenceAtLeast(a: Expression, b: Expression, c: Any): Option[AtMost] =
    sideOf(a, b).flatMap { side =>
      moved(a, b, c, -1).map { case (hi, lo) => AtMost(1 - side, lo, hi) }
    }

  /**
   * The bounds of `a`, and of `b` moved by `c`.
   *
   * @param direction of rounding: 1 for up, -1 for down.
   */
  private def moved(
      a: Expression,
      b: Expression,
      c: Any,
      direction: Int): Option[(RangeBound, RangeBound)] = {
    def whole(bits: Int, e: Expression, by: Long) =
      boundOf(e).map(_.copy(move = Move.Whole(by, 1L << (bits - 2))))
    // A difference is rounded to the nearest number, so one beyond the constant may equal it.
    def floating(next: Double) = for {
      x <- boundOf(a).map(_.copy(move = Move.Floating(0, 0)))
      y <- boundOf(b).map(_.copy(move = Move.Floating(next, direction)))
    } yield (x, y)
    def both(bound: (Expression, Long) => Option[RangeBound], by: Long) =
      for (x <- bound(a, 0); y <- bound(b, by)) yield (x, y)
    (a.dataType, b.dataType, c) match {
      case (ByteType, ByteType, c: Byte) => both(whole(8, _, _), c)
      case (ShortType, ShortType, c: Short) => both(whole(16, _, _), c)
      case (IntegerType | DateType, IntegerType | DateType, c: Int) => both(whole(32, _, _), c)
      case (LongType, LongType, c: Long) => both(whole(64, _, _), c)
      case (FloatType, FloatType, c: Float) if !c.isNaN && !c.isInfinite =>
        floating(if (direction > 0) Math.nextUp(c) else Math.nextDown(c))
      case (DoubleType, DoubleType, c: Double) if !c.isNaN && !c.isInfinite =>
        floating(if (direction > 0) Math.nextUp(c) else Math.nextDown(c))
      case (d: DecimalType, e: DecimalType, c: Decimal) if isExact(d, e) =>
        val scale = Seq(d.scale, e.scale, c.scale).max
        def decimal(e: Expression, of: DecimalType, by: java.math.BigDecimal) =
          RangeBound(e, WideDecimalKind(of.precision, of.scale, scale), Move.Exact(by))
        Some((decimal(a, d, java.math.BigDecimal.ZERO), decimal(b, e, c.toJavaBigDecimal)))
      case _ => None
    }
  }

  /** Whether each difference of two decimals has room in Spark's type for it. */
  private def isExact(a: DecimalType, b: DecimalType): Boolean = {
    val scale = math.max(a.scale, b.scale)
    math.max(a.precision - a.scale, b.precision - b.scale) + scale + 1 <= DecimalType.MAX_PRECISION
  }
}

private[range] object Difference {
  def unapply(e: Expression): Option[(Expression, Expression)] = e match {
    case s: Subtract => Some((s.left, s.right))
    case DateDiff(end, start) => Some((end, start))
    case _ => None
  }
}

private[range] object Constant {
  def unapply(e: Expression): Option[Any] = e match {
    case Literal(value, _) if value != null => Some(value)
    case _ => None
  }

  def negated(value: Any): Option[Any] = value match {
    case v: Byte if v != Byte.MinValue => Some((-v).toByte)
    case v: Short if v != Short.MinValue => Some((-v).toShort)
    case v: Int if v != Int.MinValue => Some(-v)
    case v: Long if v != Long.MinValue => Some(-v)
    case v: Float => Some(-v)
    case v: Double => Some(-v)
    case v: Decimal => Some(-v)
    case _ => None
  }
}
