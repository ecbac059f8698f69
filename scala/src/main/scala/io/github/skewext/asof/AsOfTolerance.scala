package io.github.skewext.asof

import java.math.{BigDecimal, RoundingMode}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.MICROS_PER_DAY
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.CalendarInterval

/** The arithmetic of tolerances. A sum is exact, and an error or null if its type cannot hold it. */
private[asof] object AsOfTolerance {

  /** Whether Spark can subtract values of the type, so that they have a distance. */
  def hasDifferences(t: DataType): Boolean = t match {
    case _: NumericType | DateType | TimestampType | TimestampNTZType | _: DayTimeIntervalType |
        _: YearMonthIntervalType =>
      true
    case other => SparkShims.isTime(other)
  }

  def isNegative(tolerance: Literal): Boolean = tolerance.value match {
    case decimal: Decimal => decimal.toBigDecimal.signum < 0
    case number: Number => number.doubleValue < 0
    case interval: CalendarInterval =>
      interval.months < 0 || interval.days < 0 || interval.microseconds < 0
    case _ => false
  }

  def isNaN(tolerance: Literal): Boolean = numberOf(tolerance).exists(_.isNaN)

  def isInfinite(tolerance: Literal): Boolean = numberOf(tolerance).exists(_.isInfinite)

  private def numberOf(tolerance: Literal): Option[Double] = tolerance.value match {
    case number: Double => Some(number)
    case number: Float => Some(number.toDouble)
    case _ => None
  }

  /**
   * The conditions on a version before and after a row of the spine whose time is a date, by whole
   * days. Between dates, the rest of a tolerance does not count. Spark's sums of dates and days wrap
   * around. None for other tolerances, and empty if all versions are nearer.
   */
  def dates(date: Expression, time: Expression, tolerance: Literal): Option[Seq[Expression]] =
    inDays(tolerance).collect {
      case Days(months, days, isWhole) if isWhole || time.dataType == DateType =>
        def moved(sign: Int): Expression =
          if (months == 0) date
          else DateAddYMInterval(date, Literal(sign * months, YearMonthIntervalType()))
        if (days <= Int.MaxValue) {
          def sum(sign: Int) =
            if (days == 0) moved(sign)
            else {
              val number = Add(UnixDate(moved(sign)), Literal(sign * days.toInt), EvalMode.ANSI)
              DateFromUnixDate(number)
            }
          Seq(LessThanOrEqual(sum(-1), time), GreaterThanOrEqual(sum(1), time))
        } else if (time.dataType == DateType) {
          def number(date: Expression) = Cast(UnixDate(date), LongType)
          def sum(sign: Int) = Add(number(moved(sign)), Literal(sign * days), EvalMode.ANSI)
          Seq(LessThanOrEqual(sum(-1), number(time)), GreaterThanOrEqual(sum(1), number(time)))
        } else {
          // No two timestamps are so far apart.
          Nil
        }
    }

  /** @param isWhole whether the tolerance has no part of a day. */
  private case class Days(months: Int, days: Long, isWhole: Boolean)

  private def inDays(tolerance: Literal): Option[Days] =
    (tolerance.value, tolerance.dataType) match {
      case (interval: CalendarInterval, _) =>
        val (days, rest) = (interval.microseconds / MICROS_PER_DAY, interval.microseconds)
        Some(Days(interval.months, interval.days + days, rest == 0))
      case (months: Int, _: YearMonthIntervalType) => Some(Days(months, 0, isWhole = true))
      case (micros: Long, _: DayTimeIntervalType) =>
        Some(Days(0, micros / MICROS_PER_DAY, micros % MICROS_PER_DAY == 0))
      case (_, _: NumericType) =>
        exact(tolerance).map { number =>
          val days = number.setScale(0, RoundingMode.FLOOR)
          val most = days.min(BigDecimal.valueOf(Long.MaxValue))
          Days(0, most.longValueExact, days.compareTo(number) == 0)
        }
      case _ => None
    }

  /**
   * The conditions on a version before and after a row of the spine, in decimals of the scale that
   * the times have. Spark's own sums may have a smaller scale, and those of a floating-point
   * tolerance are rounded. None unless the times are exact and either of both is no whole number, and
   * empty if the tolerance is larger than each distance.
   */
  def decimals(
      spineTime: Expression,
      time: Expression,
      tolerance: Literal): Option[Seq[Expression]] =
    for {
      scale <- scaleOf(time.dataType, tolerance.dataType)
      number <- exact(tolerance)
    } yield {
      val wide = DecimalType(DecimalType.MAX_PRECISION, scale)
      // Distances of times have no further digits.
      val distance = Decimal(number.setScale(scale, RoundingMode.FLOOR))
      def moved(by: Decimal) = CheckOverflow(
        DecimalAddNoOverflowCheck(Cast(spineTime, wide), Literal(by, wide), wide),
        wide,
        nullOnOverflow = true)
      if (distance.precision > wide.precision) {
        Nil
      } else {
        Seq(
          LessThanOrEqual(moved(-distance), Cast(time, wide)),
          GreaterThanOrEqual(moved(distance), Cast(time, wide)))
      }
    }

  /**
   * The conditions on a version before and after a row of the spine, for floating-point times: the
   * distance, in the type of the times, is at most the tolerance, as in pandas and Polars. A sum of a
   * time and the tolerance is rounded differently. It gives a second condition, which is a bound for
   * one time of the spine, see [[BoundAsOfTimes]]. None for other types, and empty if no finite
   * distance is larger.
   */
  def floating(
      spineTime: Expression,
      time: Expression,
      tolerance: Literal): Option[Seq[Expression]] = (time.dataType, tolerance.dataType) match {
    case (of @ (FloatType | DoubleType), _: NumericType) =>
      val distance = Literal(Cast(tolerance, of, ansiEnabled = false).eval(), of)
      // If a rounded distance is at most the tolerance, the exact one is at most the next number.
      val wide = distance.value match {
        case d: Double => Literal(Math.nextUp(Math.nextUp(d)), of)
        case f: Float => Literal(Math.nextUp(Math.nextUp(f)), of)
      }
      // Two infinite times have no distance, but are equal.
      def isNear(later: Expression, earlier: Expression) =
        Or(EqualTo(later, earlier), LessThanOrEqual(Subtract(later, earlier), distance))
      if (isInfinite(distance)) Some(Nil)
      else if (isInfinite(wide)) Some(Seq(isNear(spineTime, time), isNear(time, spineTime)))
      else {
        Some(
          Seq(
            And(LessThanOrEqual(Subtract(spineTime, wide), time), isNear(spineTime, time)),
            And(GreaterThanOrEqual(Add(spineTime, wide), time), isNear(time, spineTime))))
      }
    case _ => None
  }

  private def scaleOf(time: DataType, tolerance: DataType): Option[Int] = (time, tolerance) match {
    case (decimal: DecimalType, _) => Some(decimal.scale)
    case (ByteType | ShortType | IntegerType | LongType, _: DecimalType | FloatType | DoubleType) =>
      Some(0)
    case _ => None
  }

  private def exact(tolerance: Literal): Option[BigDecimal] =
    (tolerance.value, tolerance.dataType) match {
      case (decimal: Decimal, _) => Some(decimal.toJavaBigDecimal)
      // As it is written: 0.1 is no binary fraction.
      case (number: Number, FloatType | DoubleType) if !isInfinite(tolerance) =>
        Some(new BigDecimal(number.toString))
      case (number: Number, ByteType | ShortType | IntegerType | LongType) =>
        Some(BigDecimal.valueOf(number.longValue))
      case _ => None
    }
}
