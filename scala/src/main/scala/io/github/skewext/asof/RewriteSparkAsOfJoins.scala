package io.github.skewext.asof

import io.github.skewext.asof.AsOfDirection.{Backward, Forward, Nearest}
import io.github.skewext.inputs.{HintedInputs, KeyTypes, NewIds}
import io.github.skewext.join.{JoinOrigin, JoinTypeName}
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical.{AsOfJoin, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.plans.{Inner, LeftOuter}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{AS_OF_JOIN, OUTER_REFERENCE}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types._

/**
 * Rewrites Spark's own as-of joins, such as `merge_asof` of pandas on Spark, to a [[MultiAsOfJoin]].
 * Spark plans them as a join of all pairs of a key with an aggregate for each row of the spine.
 *
 * Of several versions that are equally near, Spark returns any one, as rows happen to arrive. Here it
 * is the one that the defaults of skewext's as-of join select.
 *
 * It runs in the analyzer, since Spark's optimizer replaces the node before other rules.
 */
object RewriteSparkAsOfJoins extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (conf.getConf(SkewConf.MULTI_JOIN_REWRITE)) {
      plan.resolveOperatorsUpWithPruning(_.containsPattern(AS_OF_JOIN)) {
        case join: AsOfJoin if join.resolved => rewritten(join).getOrElse(join)
      }
    } else {
      plan
    }

  /** The join as a [[MultiAsOfJoin]], or the reason why it stays Spark's. */
  def rewritten(join: AsOfJoin): Either[String, LogicalPlan] =
    for {
      inner <- join.joinType match {
        case Inner => Right(true)
        case LeftOuter => Right(false)
        case other => Left(s"${JoinTypeName.lower(other)} join")
      }
      _ <- Either.cond(!join.isStreaming, (), "streaming input")
      _ <- Either.cond(!join.containsPattern(OUTER_REFERENCE), (), "correlated subquery")
      _ <- Either.cond(isOfPairs(join), (), "Spark has an operator for it")
      // Spark's own check reports it.
      _ <- Either.cond(
        join.toleranceAssertion.forall(t => t.foldable && t.eval() == true),
        (),
        "tolerance is negative")
      keys <- keysOf(join)
      by <- SparkAsOfCondition.of(join)
    } yield planned(join, keys, by, inner)

  /**
   * Whether Spark compares all pairs of a key. From Spark 4.3 on the node has more fields, which are
   * set for an ASOF JOIN in SQL.
   */
  private def isOfPairs(join: AsOfJoin): Boolean = join.productIterator.drop(PairFields).forall {
    case None | Nil | false => true
    case _ => false
  }

  private val PairFields = 7

  private def keysOf(join: AsOfJoin): Either[String, Seq[(Expression, Expression)]] = {
    val (left, right) = (join.left.outputSet, join.right.outputSet)
    def isOf(e: Expression, side: AttributeSet) =
      e.references.nonEmpty && e.references.subsetOf(side)
    val found = join.condition.toSeq.flatMap(SparkAsOfCondition.conjuncts).map {
      case EqualTo(l, r) if isOf(l, left) && isOf(r, right) => Right((l, r))
      case EqualTo(r, l) if isOf(l, left) && isOf(r, right) => Right((l, r))
      case other => Left(s"condition ${other.sql}")
    }
    val keys = found.collect { case Right(key) => key }
    if (keys.isEmpty) Left("no equality of columns of both inputs")
    else if (keys.exists(k => !KeyTypes.canBeKey(k._1.dataType))) Left("keys that are not compared")
    else found.collectFirst { case Left(why) => why }.toLeft(keys)
  }

  private def planned(
      join: AsOfJoin,
      keys: Seq[(Expression, Expression)],
      by: SparkAsOfCondition,
      inner: Boolean): LogicalPlan = {
    val (inputs, hints) = Seq(join.left, join.right).map(SqlInternals.withoutHints).unzip
    val Seq((spine, ofSpine), (versions, ofVersions)) = NewIds.separated(inputs)
    val newColumn = AttributeMap(
      join.left.output.map(a => a -> ofSpine(a)) ++ join.right.output.map(a => a -> ofVersions(a)))
    def renewed(e: Expression) = e.transform { case a: Attribute => newColumn.getOrElse(a, a) }
    val ofBoth = keys.map { case (l, r) =>
      (KeyTypes.comparable(renewed(l)), KeyTypes.comparable(renewed(r)))
    }
    val (spineTime, time) = (renewed(by.spineTime), renewed(by.time))
    val compared = ofBoth.map(_._2) :+ time
    val decided = AttributeSet(compared.collect { case a: Attribute => a })
    // Spark compares each version with both bounds, and one that has wrapped around excludes all.
    val within = by.within.map(_ => renewed(by.within.reduce(And(_, _))))
    val multi = MultiAsOfJoin(
      Seq(
        if (inner) AsOfColumns.matchable(spine, ofBoth.map(_._1) :+ spineTime) else spine,
        AsOfColumns.comparable(versions, compared)),
      Seq(ofBoth.map(_._1), ofBoth.map(_._2)),
      Seq(spineTime, time),
      Seq(by.matches),
      Seq(
        versions.output
          .filter { a =>
            !decided.contains(a) && KeyTypes.hasOrder(a.dataType)
          }
          .map(AsOfColumns.greatest)),
      Seq(within),
      inner,
      HintedInputs.hints(hints))
    JoinOrigin.set(multi, JoinOrigin.Rewritten("Spark's as-of join"))
    val shown = join.output.zip(multi.output).map { case (before, now) =>
      if (before.exprId == now.exprId) now
      else Alias(now, before.name)(before.exprId, before.qualifier, Some(before.metadata))
    }
    if (shown.forall(_.isInstanceOf[Attribute])) multi else Project(shown, multi)
  }
}

/**
 * What a join of Spark's compares by time, read from its conditions: they are all that its node
 * keeps of the arguments.
 *
 * @param within the tolerance, as in a [[MultiAsOfJoin]].
 */
private[asof] case class SparkAsOfCondition(
    spineTime: Expression,
    time: Expression,
    matches: AsOfMatch,
    within: Seq[Expression])

private[asof] object SparkAsOfCondition extends PredicateHelper {

  def conjuncts(condition: Expression): Seq[Expression] = splitConjunctivePredicates(condition)

  def of(join: AsOfJoin): Either[String, SparkAsOfCondition] = {
    val conditions = conjuncts(join.asOfCondition).filter(_ != Literal.TrueLiteral)
    val found = (join.orderExpression, conditions) match {
      case (If(GreaterThan(l, r), _, _), Not(EqualTo(x, y)) +: within)
          if x.semanticEquals(l) && y.semanticEquals(r) =>
        Some(SparkAsOfCondition(l, r, AsOfMatch(Nearest, exact = false), within))
      case (If(GreaterThan(l, r), _, _), within) =>
        Some(SparkAsOfCondition(l, r, AsOfMatch(Nearest, exact = true), within))
      case (_, GreaterThanOrEqual(l, r) +: within) =>
        Some(SparkAsOfCondition(l, r, AsOfMatch(Backward, exact = true), within))
      case (_, GreaterThan(l, r) +: within) =>
        Some(SparkAsOfCondition(l, r, AsOfMatch(Backward, exact = false), within))
      case (_, LessThanOrEqual(l, r) +: within) =>
        Some(SparkAsOfCondition(l, r, AsOfMatch(Forward, exact = true), within))
      case (_, LessThan(l, r) +: within) =>
        Some(SparkAsOfCondition(l, r, AsOfMatch(Forward, exact = false), within))
      case _ => None
    }
    found
      .filter(isWhole(_, join))
      .toRight(s"condition ${join.asOfCondition.sql}")
      .flatMap(by =>
        if (!hasExactDifferences(by.time.dataType)) Left(s"times of type ${by.time.dataType.sql}")
        else if (join.orderExpression.exists(isFloatingPoint)) {
          Left("times that Spark subtracts as floating-point numbers")
        } else if (by.time.dataType == TimestampType && changesClocks) {
          Left(
            s"Spark subtracts local times, and ${SQLConf.get.sessionLocalTimeZone} changes clocks")
        } else Right(by))
  }

  /** Whether each condition has the time of a version on its left, and else only the spine's. */
  private def isWhole(by: SparkAsOfCondition, join: AsOfJoin): Boolean = {
    def isOf(e: Expression, side: LogicalPlan) =
      e.deterministic && e.references.nonEmpty && e.references.subsetOf(side.outputSet)
    def isLower(e: Expression) = e match {
      case GreaterThanOrEqual(v, s) => isBound(v, s)
      case GreaterThan(v, s) => isBound(v, s)
      case _ => false
    }
    def isUpper(e: Expression) = e match {
      case LessThanOrEqual(v, s) => isBound(v, s)
      case LessThan(v, s) => isBound(v, s)
      case _ => false
    }
    def isBound(version: Expression, spine: Expression) =
      isOf(spine, join.left) && version.references == by.time.references
    isOf(by.spineTime, join.left) && isOf(by.time, join.right) &&
    DataTypeUtils.sameType(by.spineTime.dataType, by.time.dataType) &&
    ((by.matches.direction, by.within) match {
      case (_, Seq()) => true
      case (Backward, Seq(lower)) => isLower(lower)
      case (Forward, Seq(upper)) => isUpper(upper)
      case (Nearest, Seq(lower, upper)) => isLower(lower) && isUpper(upper)
      case _ => false
    })
  }

  /** Without ANSI mode, Spark compares a string with an INT as INT, but subtracts both as DOUBLE. */
  private def isFloatingPoint(e: Expression): Boolean =
    e.dataType == DoubleType || e.dataType == FloatType

  private def changesClocks: Boolean =
    !DateTimeUtils.getZoneId(SQLConf.get.sessionLocalTimeZone).getRules.isFixedOffset

  /**
   * Whether Spark subtracts values exactly. It selects a version by the difference, which is not a
   * number for two infinite values, and is rounded for the longest decimals.
   */
  private def hasExactDifferences(t: DataType): Boolean = t match {
    case ByteType | ShortType | IntegerType | LongType => true
    case DateType | TimestampType | TimestampNTZType => true
    case decimal: DecimalType => decimal.precision < DecimalType.MAX_PRECISION
    case _ => false
  }
}
