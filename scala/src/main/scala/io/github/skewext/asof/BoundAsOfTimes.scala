package io.github.skewext.asof

import io.github.skewext.asof.AsOfDirection.{Backward, Forward, Nearest}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Max, Min}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
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

  /** The filters that the versions have. They may be simplified there. */
  private val Bounds = TreeNodeTag[ExpressionSet]("skewext.asOfTimeBounds")

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
      val own = join.times(i)
      val direction = join.matches(i - 1).direction
      val (earliest, latest) = known(join, time)
      def beyond(condition: Expression, of: AggregateFunction, slack: Long) = condition match {
        case Coalesce(Seq(TryEval(comparison: BinaryComparison), _))
            if comparison.left.references.subsetOf(join.spine.outputSet) =>
          val bound = comparison.left.transformUp {
            case t: Attribute if t.semanticEquals(time) =>
              moved(of.toAggregateExpression(), t.dataType, slack)
          }
          limit(bound.dataType, slack).map { last =>
            comparison.withNewChildren(
              Seq(computed(Coalesce(Seq(TryEval(bound), last))), comparison.right))
          }
        case _ => None
      }
      def exactly(of: AggregateFunction) = computed(of.toAggregateExpression())
      val within = join.within(i - 1)
      val lower = direction match {
        case _ if earliest.isDefined => None
        case Forward => Some(GreaterThanOrEqual(own, exactly(Min(time))))
        case Backward | Nearest => within.headOption.flatMap(beyond(_, Min(time), -Slack))
      }
      val upper = direction match {
        case _ if latest.isDefined => None
        case Backward => Some(LessThanOrEqual(own, exactly(Max(time))))
        case Forward | Nearest => within.lastOption.flatMap(beyond(_, Max(time), Slack))
      }
      (lower ++ upper).toSeq
    case _ => Nil
  }

  /** The first and the last time of the spine, as far as its filters say them. */
  private def known(join: MultiAsOfJoin, time: Attribute): (Option[Literal], Option[Literal]) = {
    val constraints = join.spine.constraints.toSeq
    def first(found: PartialFunction[Expression, Literal]) =
      constraints.collectFirst(found).filter(_.value != null)
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
    val before = join.getTagValue(Bounds).getOrElse(ExpressionSet())
    val added = join.children.indices.tail.map { i =>
      boundsOf(join, i, time, earliest, latest).filterNot(before.contains)
    }
    if (added.forall(_.isEmpty)) {
      join
    } else {
      val versions = join.children.tail.zip(added).map { case (child, conditions) =>
        conditions.reduceOption(And).fold(child)(Filter(_, child))
      }
      val changed = join.withNewChildren(join.spine +: versions)
      changed.setTagValue(Bounds, ExpressionSet(before.toSeq ++ added.flatten))
      changed
    }
  }

  /** What holds for each version of a table that a row of the spine can match. */
  private def boundsOf(
      join: MultiAsOfJoin,
      i: Int,
      time: Attribute,
      earliest: Option[Literal],
      latest: Option[Literal]): Seq[Expression] = {
    val own = join.times(i)
    val within = join.within(i - 1)
    def withinOf(condition: Expression, at: Literal, slack: Long) = condition.transform {
      case t: Attribute if t.semanticEquals(time) => moved(at, slack)
    }
    // Others, of Spark's own joins, may wrap around where a difference overflows.
    val tolerance = within.nonEmpty && within.forall(_.exists(_.isInstanceOf[TryEval]))
    val lower = earliest.toSeq.flatMap { at =>
      join.matches(i - 1).direction match {
        case Forward => Some(GreaterThanOrEqual(own, at))
        case Backward | Nearest if tolerance => Some(withinOf(within.head, at, -Slack))
        case _ => None
      }
    }
    val upper = latest.toSeq.flatMap { at =>
      join.matches(i - 1).direction match {
        case Backward => Some(LessThanOrEqual(own, at))
        case Forward | Nearest if tolerance =>
          Some(withinOf(within.last, at, Slack))
        case _ => None
      }
    }
    lower ++ upper
  }

  /**
   * A month before the 31st is as far back as a month before the 30th, whatever the time of day, and
   * clocks are put back. So a later time minus an interval may be an earlier one, by about a day.
   */
  private val Slack = 2 * MICROS_PER_DAY

  private def moved(at: Literal, slack: Long): Literal = (at.value, at.dataType) match {
    case (micros: Long, TimestampType | TimestampNTZType) =>
      val sum = micros + slack
      // An overflow leaves the time as far as it can be.
      if ((sum < micros) == (slack < 0)) Literal(sum, at.dataType) else at
    case _ => at
  }

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
