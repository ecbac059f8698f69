package io.github.skewext.asof

import java.time.LocalDate

import scala.util.Try

import io.github.skewext.asof.AsOfDirection.{Backward, Forward, Nearest}
import io.github.skewext.facts.{AddedPredicates, SafeToPush}

import org.apache.spark.sql.catalyst.CatalystTypeConverters
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Max, Min}
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
 * So Spark reads fewer partitions and row groups of the versions.
 */
object BoundAsOfTimes extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case join: MultiAsOfJoin =>
      // A cast of the time may have another order than the time.
      join.times.head match {
        case time: Attribute => bounded(join, time)
        case _ => join
      }
    }

  /**
   * Conditions on the versions of an input that follow from the first and the last time of the
   * spine, where no filter of the spine says these.
   *
   * @param computed gives the value of an aggregate over the spine.
   */
  private[asof] def atRunTime(
      join: MultiAsOfJoin,
      i: Int,
      computed: Expression => Expression): Seq[Expression] = join.times.head match {
    case time: Attribute =>
      val (earliest, latest) = known(join, time)
      def unlessKnown(found: Option[Literal], of: AggregateFunction, slack: Long) =
        if (found.isDefined) None else Some(ComputedTime(time, of, slack, computed))
      boundsOf(
        join,
        i,
        unlessKnown(earliest, Min(time), -Slack),
        unlessKnown(latest, Max(time), Slack))
    case _ => Nil
  }

  /** The first and the last time of the spine, as far as its filters say them. */
  private def known(join: MultiAsOfJoin, time: Attribute): (Option[Literal], Option[Literal]) = {
    val constraints = join.spine.constraints.toSeq
    def first(found: PartialFunction[Expression, Literal]) =
      constraints.collectFirst(found).filter(isConvertible)
    val latest = first {
      case LessThanOrEqual(t, at: Literal) if t.semanticEquals(time) => at
      case LessThan(t, at: Literal) if t.semanticEquals(time) => at
      case EqualTo(t, at: Literal) if t.semanticEquals(time) => at
    }
    val earliest = first {
      case GreaterThanOrEqual(t, at: Literal) if t.semanticEquals(time) => at
      case GreaterThan(t, at: Literal) if t.semanticEquals(time) => at
      case EqualTo(t, at: Literal) if t.semanticEquals(time) => at
    }
    (earliest, latest)
  }

  private def bounded(join: MultiAsOfJoin, time: Attribute): LogicalPlan = {
    val (earliest, latest) = known(join, time)
    val added = join.children.indices.tail.map { i =>
      val bounds = boundsOf(
        join,
        i,
        earliest.map(KnownTime(time, _, -Slack)),
        latest.map(KnownTime(time, _, Slack))).filterNot(AddedPredicates.has(join, 0, _))
      if (bounds.nonEmpty && SafeToPush(join.children(i), join.times(i))) bounds else Nil
    }
    if (added.forall(_.isEmpty)) {
      join
    } else {
      val versions = join.children.tail.zip(added).map { case (child, conditions) =>
        conditions.reduceOption(And).fold(child)(Filter(_, child))
      }
      val changed = join.withNewChildren(join.spine +: versions)
      AddedPredicates.record(changed, join, Map(0 -> added.flatten))
      changed
    }
  }

  /** What holds for each version of a table that a row of the spine can match. */
  private def boundsOf(
      join: MultiAsOfJoin,
      i: Int,
      earliest: Option[EndOfSpine],
      latest: Option[EndOfSpine]): Seq[Expression] = {
    val own = join.times(i)
    val within = join.within(i - 1)
    val direction = join.matches(i - 1).direction
    val lower = earliest.flatMap { first =>
      direction match {
        case Forward => Some(own -> first.time)
        case Backward | Nearest => within.headOption.flatMap(first.within)
      }
    }
    val upper = latest.flatMap { last =>
      direction match {
        case Backward => Some(own -> last.time)
        case Forward | Nearest => within.lastOption.flatMap(last.within)
      }
    }
    (lower.map { case (time, end) => from(time, end) } ++
      upper.map { case (time, end) => LessThanOrEqual(time, end) }).toSeq
  }

  /**
   * The first or the last time of the spine.
   *
   * @param slack how far the time moves in conditions, see [[Slack]]
   */
  private abstract class EndOfSpine(ofSpine: Attribute, end: Expression, slack: Long) {

    def time: Expression

    /** An expression over the end as a value, unless it is none in its type. */
    protected def value(bound: Expression): Option[Expression]

    /**
     * The two sides of a condition of a tolerance, for this time in place of that of a row: a
     * version's time, and a value, because sources know no other filters. Conditions of Spark's own
     * joins give none: they may wrap around where a difference overflows.
     */
    def within(condition: Expression): Option[(Expression, Expression)] = condition match {
      case Coalesce(Seq(TryEval(And(bound: BinaryComparison, _)), otherwise)) =>
        within(Coalesce(Seq(TryEval(bound), otherwise)))
      case Coalesce(Seq(TryEval(comparison: BinaryComparison), _))
          if comparison.left.references.subsetOf(AttributeSet(ofSpine)) =>
        val bound = comparison.left.transformUp {
          case t: Attribute if t.semanticEquals(ofSpine) => moved(end, t.dataType, slack)
        }
        value(bound).map(comparison.right -> _)
      case _ => None
    }
  }

  private case class KnownTime(ofSpine: Attribute, time: Literal, slack: Long)
      extends EndOfSpine(ofSpine, time, slack) {

    override protected def value(bound: Expression): Option[Expression] =
      Try(Literal(bound.eval(), bound.dataType)).toOption.filter(isConvertible)
  }

  /** The value is computed in the aggregate. */
  private case class ComputedTime(
      ofSpine: Attribute,
      function: AggregateFunction,
      slack: Long,
      computed: Expression => Expression)
      extends EndOfSpine(ofSpine, function.toAggregateExpression(), slack) {

    override def time: Expression = computed(convertible(function.toAggregateExpression()))

    override protected def value(bound: Expression): Option[Expression] =
      limit(bound.dataType, slack).map { last =>
        computed(convertible(Coalesce(Seq(TryEval(bound), last))))
      }
  }

  /**
   * Whether sources get the value right in a filter. Spark writes dates and timestamps with four
   * digits of the year to the SQL of JDBC, so 10000-01-07 would become 0000-01-07.
   */
  private def isConvertible(value: Literal): Boolean = value.value != null &&
    Try(CatalystTypeConverters.convertToScala(value.value, value.dataType)).isSuccess &&
    ((value.value, value.dataType) match {
      case (days: Int, DateType) => FourDigits.contains(days)
      case (micros: Long, TimestampType | TimestampNTZType) =>
        FourDigits.contains(Math.floorDiv(micros, MICROS_PER_DAY).toInt)
      case _ => true
    })

  /** The days from 0001-01-02 to 9999-12-30, whose years have four digits in each time zone. */
  private val FourDigits =
    LocalDate.of(1, 1, 2).toEpochDay.toInt to LocalDate.of(9999, 12, 30).toEpochDay.toInt

  /**
   * A value that Spark can convert for the filters of sources, which fails the query otherwise: not
   * null, as of a spine without a time, and a later one in place of the first dates and timestamps.
   */
  private def convertible(value: Expression): Expression = firstConvertible(value.dataType)
    .fold[Expression](Coalesce(Seq(value, Literal.default(value.dataType)))) { first =>
      Greatest(Seq(value, first))
    }

  /** The classes of `java.sql` have another calendar, in which the first values overflow. */
  private def firstConvertible(of: DataType): Option[Literal] = of match {
    case DateType => Some(Literal(Int.MinValue + 50000, of))
    case TimestampType => Some(Literal(Long.MinValue + 3000 * MICROS_PER_DAY, of))
    case _ => None
  }

  /** Versions from a time on, and those before the first time that is [[convertible]]. */
  private def from(time: Expression, end: Expression): Expression = {
    val after = GreaterThanOrEqual(time, end)
    if (end.foldable) after
    else firstConvertible(end.dataType).fold[Expression](after)(t => Or(after, LessThan(time, t)))
  }

  /**
   * A month before the 28th to the 31st of March may be the same day, and clocks are put back. So a
   * later time minus an interval may be an earlier one, for times that are up to three days apart,
   * and a bit more by the clock.
   */
  private val Slack = 4 * MICROS_PER_DAY

  private def moved(at: Expression, of: DataType, slack: Long): Expression = of match {
    case TimestampType | TimestampNTZType =>
      val micros = PreciseTimestampConversion(at, of, LongType)
      val sum = Add(micros, Literal(slack), EvalMode.ANSI)
      PreciseTimestampConversion(sum, LongType, of)
    case _ => at
  }

  /** The last value of a type in the direction of the slack: no bound. */
  private def limit(of: DataType, slack: Long): Option[Literal] = {
    def either[T](least: T, greatest: T) =
      Some(Literal(if (slack < 0) least else greatest, of))
    of match {
      case ByteType => either(Byte.MinValue, Byte.MaxValue)
      case ShortType => either(Short.MinValue, Short.MaxValue)
      case IntegerType | DateType => either(Int.MinValue, Int.MaxValue)
      case LongType | TimestampType | TimestampNTZType => either(Long.MinValue, Long.MaxValue)
      case _ => None
    }
  }
}
