package io.github.skewext.join.range

import io.github.skewext.facts.{JoinHints, ReadsInputFile}
import io.github.skewext.inputs.NewIds
import io.github.skewext.join.{EstimatedRows, PlanCopies}
import io.github.skewext.platform.SkewConf
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.CollectSet
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.types.IntegerType

/**
 * Cuts a join by a range, neither side of which is small, into ranges of values. Then it is a join
 * on equal keys, the numbers of the ranges, beside which the range is searched as before:
 * {{{
 * Join inner, range = range AND (pos = 0 OR pos = 0) AND t >= lo AND t < hi
 *   Generate posexplode(touchedranges(t, t, sample)) [pos, range]
 *     points
 *   Generate posexplode(touchedranges(lo, hi, sample)) [pos, range]
 *     intervals
 * }}}
 * An interval is in each range that it touches. A pair whose intervals touch is in several ranges
 * together. It is returned in the range of the larger one of the two lower ends, which is the first
 * range of one of them. A side whose rows are in one range each needs no such test, and may be the
 * outer side.
 *
 * The bounds of ranges are quantiles of lower ends, so data that is dense in places has narrow ranges
 * there. A scalar subquery samples them by a hash of their values: each side reads the same bounds.
 */
object CutRangeJoins extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    // Spark evaluates equal subqueries once only if it may reuse them.
    if (!plan.containsPattern(JOIN) || !conf.getConf(SkewConf.RANGE_JOIN_ENABLED) ||
      !conf.subqueryReuseEnabled || plan.exists(_.isInstanceOf[RowLevelWrite])) {
      plan
    } else {
      lazy val readsFile = ReadsInputFile(plan)
      plan.transformUpWithPruning(_.containsPattern(JOIN)) { case join: Join =>
        rangeOf(join)
          .filter(_ => isWorthwhile(join) && !readsFile)
          .fold[LogicalPlan](join)(cut(join, _))
      }
    }

  private def rangeOf(join: Join): Option[RangeMatch] = join match {
    case _ if TechniqueHint.of(join).isDefined || JoinHints.strategiesOfUser(join).nonEmpty => None
    case _ if PlanRangeJoins.whyNot(join).isDefined => None
    case ExtractEquiJoinKeys(_, _, _, _, _, _, _, _) => None
    case _ =>
      RangeMatch
        .of(join.condition.get, join.left, join.right)
        .filter(_.sides.flatMap(side => Seq(side.lo, side.hi)).map(_.kind.line).distinct.size == 1)
        .filter(range => canCut(join.joinType, range))
  }

  private def canCut(joinType: JoinType, range: RangeMatch): Boolean = joinType match {
    case _: InnerLike => true
    case LeftOuter | LeftExistence(_) => isInOneRange(range.left)
    case RightOuter => isInOneRange(range.right)
    case _ => false
  }

  /** Whether no row is in two ranges. A value that cannot be moved, or evaluated, is in all. */
  private def isInOneRange(ends: RangeEnds): Boolean =
    ends.isPoint && ends.lo.move == null && isColumn(ends.lo.value) &&
      // Or a null may be in all ranges.
      (ends.lo.ofNull.isEmpty || ends.hi.ofNull.isEmpty)

  private def isColumn(value: Expression): Boolean = value match {
    case _: Attribute => true
    // To a wider type.
    case cast: Cast => isColumn(cast.child) && Cast.canUpCast(cast.child.dataType, cast.dataType)
    case _ => false
  }

  private def isWorthwhile(join: Join): Boolean = {
    def mayBeBroadcast(side: LogicalPlan) =
      side.stats.sizeInBytes <= conf.autoBroadcastJoinThreshold
    // A sample reads a side once more.
    !join.children.exists(mayBeBroadcast) && join.children.forall(PlanCopies.isPossible) &&
    join.children.map(EstimatedRows.of).product >= conf.getConf(SkewConf.RANGE_JOIN_MIN_PAIRS)
  }

  private def cut(join: Join, range: RangeMatch): LogicalPlan = {
    val number = math.max(2, math.min(conf.numShufflePartitions, MostRanges))
    val sample = ScalarSubquery(sampleOf(join.children, range.sides, number))
    val Seq(left, right) = join.children.zip(range.sides).zipWithIndex.map {
      case ((side, ends), i) => placed(side, ends, i, sample, number)
    }
    val isFirst = for (l <- left.place; r <- right.place) yield Or(isZero(l), isZero(r))
    val on = EqualTo(left.number, right.number) +: (isFirst.toSeq ++ join.condition)
    val hint = Some(TechniqueHint(TechniqueHint.OfRanges(range.form, number)))
    val joined = join.copy(
      left = left.plan,
      right = right.plan,
      condition = Some(on.reduceLeft(And)),
      hint = JoinHint(hint, hint))
    Project(join.output, joined)
  }

  private def isZero(place: Attribute): Expression = EqualTo(place, Literal(0))

  /**
   * A side with the number of a range in each row.
   *
   * @param place of that range among those of the row; None if each row has one.
   */
  private case class Placed(plan: LogicalPlan, number: Attribute, place: Option[Attribute])

  private def placed(
      side: LogicalPlan,
      ends: RangeEnds,
      i: Int,
      sample: Expression,
      number: Int): Placed = {
    val touched =
      TouchedRanges(ends.lo.value, ends.hi.value, sample, ends.map(_ => NoValue), number)
    if (isInOneRange(ends)) {
      val only = Alias(GetArrayItem(touched, Literal(0)), NewIds.newName("range", i.toString))()
      Placed(Project(side.output :+ only, side), only.toAttribute, None)
    } else {
      def column(name: String) =
        AttributeReference(NewIds.newName(name, i.toString), IntegerType, nullable = false)()
      val (place, range) = (column("place"), column("range"))
      val copies = Generate(PosExplode(touched), Nil, outer = false, None, Seq(place, range), side)
      Placed(copies, range, Some(place))
    }
  }

  private val NoValue = Literal.TrueLiteral

  /** The lower keys of some rows. Equal rows are either all in it, or none of them is. */
  private def sampleOf(sides: Seq[LogicalPlan], ends: Seq[RangeEnds], number: Int): LogicalPlan = {
    val keys = sides.zip(ends).zipWithIndex.map { case ((side, of), i) =>
      val read = AttributeSet(Seq(of.lo.value, of.hi.value))
      val (copy, over) = PlanCopies.of(Project(side.output.filter(read.contains), side), i)
      val key = LowerKey(over(of.lo.value), over(of.hi.value), of.map(_ => NoValue))
      Project(Seq(Alias(key, "key")()), copy)
    }
    val all = Union(keys)
    val key = all.output.head
    val order = Seq(new XxHash64(Seq(key)), key).map(SortOrder(_, Ascending))
    val some = Limit(
      Literal(math.min(RowsOfRange * number, MostSampled)),
      Sort(order, global = true, Filter(IsNotNull(key), all)))
    val set = Alias(new CollectSet(key).toAggregateExpression(), "sample")()
    ColumnPruning(Aggregate(Nil, Seq(set), some))
  }

  private val MostRanges = 10000
  private val RowsOfRange = 20
  private val MostSampled = 50000
}
