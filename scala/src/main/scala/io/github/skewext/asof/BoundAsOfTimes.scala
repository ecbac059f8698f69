package io.github.skewext.asof

import java.time.LocalDate

import scala.util.Try

import io.github.skewext.asof.AsOfDirection.{Backward, Forward}
import io.github.skewext.facts.{AddedPredicates, SafeToPush}

import org.apache.spark.sql.catalyst.expressions._
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
        val bounds = boundsOf(join, time, i).filterNot(AddedPredicates.has(join, 0, _))
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
  private def boundsOf(join: MultiAsOfJoin, time: Attribute, i: Int): Seq[Expression] = {
    val within = join.within(i - 1)
    val direction = join.matches(i - 1).direction
    def side(isFirst: Boolean, other: AsOfDirection, tolerance: Option[Expression]) =
      known(join, time, isFirst).flatMap { end =>
        if (direction == other) Some(join.times(i) -> end)
        else tolerance.flatMap(boundWithin(_, time, end, isFirst))
      }
    val lower = side(isFirst = true, Forward, within.headOption).map(GreaterThanOrEqual.tupled)
    val upper = side(isFirst = false, Backward, within.lastOption).map(LessThanOrEqual.tupled)
    (lower ++ upper).toSeq
  }

  /**
   * The two sides of a condition of a tolerance, for the first or the last time of the spine in place
   * of that of a row: a version's time, and a value. Conditions of Spark's own joins give none: they
   * may wrap around where a difference overflows.
   */
  private def boundWithin(
      condition: Expression,
      time: Attribute,
      end: Literal,
      isFirst: Boolean): Option[(Expression, Expression)] = condition match {
    case Coalesce(Seq(TryEval(And(bound: BinaryComparison, _)), otherwise)) =>
      boundWithin(Coalesce(Seq(TryEval(bound), otherwise)), time, end, isFirst)
    case Coalesce(Seq(TryEval(comparison: BinaryComparison), _))
        if comparison.left.references.subsetOf(AttributeSet(time)) =>
      val bound = comparison.left.transformUp {
        case t: Attribute if t.semanticEquals(time) => moved(end, isFirst)
      }
      Try(Literal(bound.eval(), bound.dataType)).toOption
        .filter(isConvertible)
        .map(comparison.right -> _)
    case _ => None
  }

  /**
   * The time, four days further. A month before the 28th to the 31st of March may be the same day,
   * and clocks are put back. So a later time minus an interval may be an earlier one, for times
   * that are up to three days apart, and a bit more by the clock.
   */
  private def moved(end: Literal, isFirst: Boolean): Expression = end.dataType match {
    case of @ (TimestampType | TimestampNTZType) =>
      val days = Literal((if (isFirst) -4 else 4) * MICROS_PER_DAY)
      val micros = Add(PreciseTimestampConversion(end, of, LongType), days, EvalMode.ANSI)
      PreciseTimestampConversion(micros, LongType, of)
    case _ => end
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
}
