package io.github.skewext.asof

import java.time.LocalDate

import scala.util.Try

import io.github.skewext.asof.AsOfDirection.{Backward, Forward}
import io.github.skewext.facts.{AddedPredicates, SafeToPush}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Max, Min}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.catalyst.util.DateTimeConstants.MICROS_PER_DAY
import org.apache.spark.sql.types._

/**
 * Adds filters on the time of versions that follow from filters on the time of the spine:
 * {{{
 * MultiAsOfJoin, backward, within 5      MultiAsOfJoin, backward, within 5
 * :- Filter (10 <= t AND t < 20)     =>  :- Filter (10 <= t AND t < 20)
 * |  +- spine (t)                        :  +- spine (t)
 * +- versions (vt)                       +- Filter (10 - 5 <= vt AND vt <= 20)
 *                                           +- versions (vt)
 * }}}
 * So Spark reads fewer partitions and row groups of the versions. The times must be numbers, dates or
 * timestamps.
 */
object BoundAsOfTimes extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case join @ Timed(time) =>
      val added = join.children.indices.tail.map { i =>
        val bounds = boundsOf(join, i) { isFirst =>
          known(join, time, isFirst).map(End(time, isFirst, _) { bound =>
            Try(Literal(bound.eval(), bound.dataType)).toOption.filter(isConvertible)
          })
        }.filterNot(AddedPredicates.has(join, 0, _))
        if (bounds.nonEmpty && SafeToPush(join.children(i), join.times(i))) bounds else Nil
      }
      if (added.forall(_.isEmpty)) join
      else {
        val versions = join.children.tail.zip(added).map { case (child, conditions) =>
          conditions.reduceOption(And).fold(child)(Filter(_, child))
        }
        val changed = join.withNewChildren(join.spine +: versions)
        AddedPredicates.record(changed, Map(0 -> added.flatten))
        changed
      }
    }

  /**
   * Conditions on the versions of an input that follow from the first and the last time of the
   * spine, unless a filter of the spine already gives these times.
   *
   * @param computed gives the value of an aggregate over the spine.
   */
  private[asof] def atRunTime(
      join: MultiAsOfJoin,
      i: Int,
      computed: Expression => Expression): Seq[Expression] = join match {
    case Timed(time) =>
      boundsOf(join, i) { isFirst =>
        val end = (if (isFirst) Min(time) else Max(time)).toAggregateExpression()
        if (known(join, time, isFirst).isDefined) None
        else Some(End(time, isFirst, end)(convertible(_, isFirst).map(computed)))
      }
    case _ => Nil
  }

  /** A join and the time of its spine. A cast of the time may have another order than the time. */
  private object Timed {
    def unapply(join: MultiAsOfJoin): Option[Attribute] = Some(join.times.head).collect {
      case time: Attribute if hasDays(time.dataType) || time.dataType.isInstanceOf[NumericType] =>
        time
    }
  }

  private val hasDays = Set[DataType](DateType, TimestampType, TimestampNTZType)

  /** The value with which a filter of the spine bounds its time. */
  private def known(join: MultiAsOfJoin, time: Attribute, isFirst: Boolean): Option[Literal] =
    join.spine.constraints.toSeq
      .collect {
        case EqualTo(t, at: Literal) => (t, at)
        case GreaterThan(t, at: Literal) if isFirst => (t, at)
        case GreaterThanOrEqual(t, at: Literal) if isFirst => (t, at)
        case LessThan(t, at: Literal) if !isFirst => (t, at)
        case LessThanOrEqual(t, at: Literal) if !isFirst => (t, at)
      }
      .collectFirst { case (t, at) if t.semanticEquals(time) && isConvertible(at) => at }

  /** Conditions that each version of a table meets if it can match a row of the spine. */
  private def boundsOf(join: MultiAsOfJoin, i: Int)(
      endOf: Boolean => Option[End]): Seq[Expression] = {
    val within = join.within(i - 1)
    val direction = join.matches(i - 1).direction
    def sides(isFirst: Boolean, other: AsOfDirection, tolerance: Option[Expression]) =
      endOf(isFirst).flatMap { end =>
        if (direction == other) end.value(end.time).map(join.times(i) -> _)
        else tolerance.flatMap(end.within)
      }
    val lower = sides(isFirst = true, Forward, within.headOption).map { case (time, end) =>
      val after = GreaterThanOrEqual(time, end)
      // Versions before the first time that is convertible may match.
      if (end.foldable || !hasDays(end.dataType)) after
      else Or(after, LessThan(time, firstConvertible(end.dataType)))
    }
    val upper = sides(isFirst = false, Backward, within.lastOption)
    (lower ++ upper.map { case (time, end) => LessThanOrEqual(time, end) }).toSeq
  }

  /**
   * The first or the last time of the spine.
   *
   * @param value gives a value that sources know for an expression over the time, if there is one
   */
  private case class End(ofSpine: Attribute, isFirst: Boolean, time: Expression)(
      val value: Expression => Option[Expression]) {

    /**
     * The two sides of a condition of a tolerance, for this time in place of that of a row: a
     * version's time, and a value. Conditions of Spark's own joins give none: they may wrap around
     * where a difference overflows.
     */
    def within(condition: Expression): Option[(Expression, Expression)] = condition match {
      case Coalesce(Seq(TryEval(And(bound: BinaryComparison, _)), otherwise)) =>
        within(Coalesce(Seq(TryEval(bound), otherwise)))
      case Coalesce(Seq(TryEval(comparison: BinaryComparison), _))
          if comparison.left.references.subsetOf(AttributeSet(ofSpine)) =>
        val bound = comparison.left.transformUp {
          case t: Attribute if t.semanticEquals(ofSpine) => moved
        }
        value(bound).map(comparison.right -> _)
      case _ => None
    }

    /**
     * The time, four days further. A month before the 28th to the 31st of March may be the same day,
     * and clocks are put back. So a later time minus an interval may be an earlier one, for times
     * that are up to three days apart, and a bit more by the clock.
     */
    private def moved: Expression = ofSpine.dataType match {
      case of @ (TimestampType | TimestampNTZType) =>
        val days = Literal((if (isFirst) -4 else 4) * MICROS_PER_DAY)
        val micros = Add(PreciseTimestampConversion(time, of, LongType), days, EvalMode.ANSI)
        PreciseTimestampConversion(micros, LongType, of)
      case _ => time
    }
  }

  /**
   * Spark writes years of four digits to the SQL of JDBC, so 10000-01-07 would become 0000-01-07.
   * The classes of `java.sql`, to which Spark converts the filters of sources, overflow for the
   * first values of a type. These days, 0001-01-02 to 9999-12-30, are safe in each time zone.
   */
  private val SafeDays =
    LocalDate.of(1, 1, 2).toEpochDay.toInt to LocalDate.of(9999, 12, 30).toEpochDay.toInt

  private def isConvertible(value: Literal): Boolean = (value.value, value.dataType) match {
    case (days: Int, DateType) => SafeDays.contains(days)
    case (micros: Long, TimestampType | TimestampNTZType) =>
      SafeDays.contains(Math.floorDiv(micros, MICROS_PER_DAY).toInt)
    case (other, _) => other != null
  }

  private def firstConvertible(of: DataType): Literal =
    if (of == DateType) Literal(SafeDays.head, of)
    else Literal(SafeDays.head * MICROS_PER_DAY, of)

  /**
   * The value, or a later one that sources can convert. The least or greatest value of its type, no
   * bound, stands for null and an overflow. None for types that are seldom times.
   */
  private def convertible(value: Expression, isFirst: Boolean): Option[Expression] = {
    val of = value.dataType
    val noBound = of match {
      case IntegerType | DateType => Some(if (isFirst) Int.MinValue else Int.MaxValue)
      case LongType | TimestampType | TimestampNTZType =>
        Some(if (isFirst) Long.MinValue else Long.MaxValue)
      case _ => None
    }
    noBound.map { last =>
      val found = Coalesce(Seq(TryEval(value), Literal(last, of)))
      if (hasDays(of)) Greatest(Seq(found, firstConvertible(of))) else found
    }
  }
}
