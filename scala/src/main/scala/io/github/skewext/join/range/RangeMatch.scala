package io.github.skewext.join.range

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * The range in the condition of a join. Each row has an interval, and a pair of rows matches only if
 * the intervals touch each other:
 * {{{
 * left.lo <= right.hi AND right.lo <= left.hi
 * }}}
 * That is necessary for a match, not sufficient: joins evaluate the whole condition for each pair
 * whose intervals touch. So `<` and `<=` are the same here, and an end may be farther than it must be.
 *
 * The ends of a side need not be in order. An interval whose `lo` is larger than its `hi` may match,
 * because the condition says nothing about that.
 */
private[skewext] case class RangeMatch(left: RangeEnds, right: RangeEnds) {

  def sides: Seq[RangeEnds] = Seq(left, right)

  def map(f: Expression => Expression): RangeMatch = RangeMatch(left.map(f), right.map(f))

  /** The form of the range, for explanations. */
  def form: String =
    if (sides.exists(_.isWithoutLower)) "comparison"
    else if (left.isOfOneColumn && right.isOfOneColumn) "band"
    else if (left.isPoint || right.isPoint) "point in interval"
    else "overlap of intervals"
}

private[skewext] object RangeMatch {

  /** The range of a condition over two sides: the first of those that are most selective. */
  def of(condition: Expression, left: LogicalPlan, right: LogicalPlan): Option[RangeMatch] =
    of(condition, Seq(left.outputSet, right.outputSet))

  def of(condition: Expression, sides: Seq[AttributeSet]): Option[RangeMatch] = {
    val (leftLower, rightLower) = comparisons(condition, sides).partition(_.lowerSide == 0)
    val all =
      for (a <- leftLower; b <- rightLower)
        yield RangeMatch(RangeEnds(a.lower, b.upper), RangeEnds(b.lower, a.upper))
    if (all.isEmpty) None else Some(all.minBy(rank))
  }

  /**
   * The same for a condition beside equal keys. There, a comparison in one direction is worth a search,
   * too: intervals without a lower end and without an upper end.
   */
  def besideKeys(condition: Expression, sides: Seq[AttributeSet]): Option[RangeMatch] =
    of(condition, sides).orElse(comparisons(condition, sides).headOption.map { found =>
      val above = RangeEnds(found.lower, RangeBound.Highest)
      val below = RangeEnds(RangeBound.Lowest, found.upper)
      if (found.lowerSide == 0) RangeMatch(above, below) else RangeMatch(below, above)
    })

  /** Whether the condition compares the sides in one direction only. */
  def isOneSided(condition: Expression, left: LogicalPlan, right: LogicalPlan): Boolean =
    comparisons(condition, Seq(left.outputSet, right.outputSet)).nonEmpty

  /** Ends of one column are nearer to each other than those of two. */
  private def rank(range: RangeMatch): Int =
    if (range.sides.forall(_.isOfOneColumn)) 0
    else if (range.sides.exists(_.isOfOneColumn)) 1
    else if (range.left.lo.kind == range.left.hi.kind) 2
    else 3

  private def comparisons(condition: Expression, sides: Seq[AttributeSet]): Seq[AtMost] =
    new RangeForms(sides).in(condition)
}

/** A value of side `lowerSide` is at most a value of the other side. */
private[range] case class AtMost(lowerSide: Int, lower: RangeBound, upper: RangeBound) {

  /**
   * The same, or `end` is null. Then a null of that end matches all values of the other side. A null of
   * the other side matches such nulls, unless the comparison is open at both ends.
   */
  def open(end: Expression): Option[AtMost] = {
    val atLower = lower.isNullWith(end)
    val atUpper = upper.isNullWith(end)
    if (atLower || atUpper) {
      Some(opened(atLower || lower.isOpenDown, atUpper || upper.isOpenUp))
    } else {
      None
    }
  }

  private def opened(isDown: Boolean, isUp: Boolean): AtMost =
    copy(
      lower = lower.copy(ofNull = Some(if (isDown) Long.MinValue else Long.MaxValue)),
      upper = upper.copy(ofNull = Some(if (isUp) Long.MaxValue else Long.MinValue)))
}
