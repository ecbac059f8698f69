package io.github.skewext.latest

import io.github.skewext.inputs.KeyTypes
import io.github.skewext.join.JoinOrigin
import io.github.skewext.platform.{NamedStrategy, SkewConf}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Window, WindowGroupLimit}
import org.apache.spark.sql.execution.window.{Partial, WindowGroupLimitExec}
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{ShuffleService, SparkShims}

/**
 * Plans `row_number() = 1` as [[LatestRowsExec]], which groups rows by the key:
 * {{{
 * Filter (rn = 1 AND a > 2)                      Filter (a > 2)
 * +- Window [row_number() AS rn] k, t DESC       +- Project [k, t, a, 1 AS rn]
 *    +- WindowGroupLimit                     =>     +- LatestRows k, t DESC
 *       +- input (k, t, a)                             +- WindowGroupLimit, in each map task
 *                                                         +- input (k, t, a)
 * }}}
 * Of several rows that are first in the order, both plans return any one.
 *
 * It is a strategy, because Spark's optimizer pushes predicates and run-time filters below windows
 * until its last batches. Spark plans what is below the exchange as before, with its limit for each
 * map task. So no exchange is added, and none has more rows.
 */
object RewriteRowNumbers extends NamedStrategy with PredicateHelper {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case filter @ FirstRows(first) if isOn && whyNot(filter, first).isEmpty =>
      planned(first) :: Nil
    case _ => Nil
  }

  override protected def isOn: Boolean = super.isOn && SQLConf.get.getConf(SkewConf.LATEST_REWRITE)

  /** Why all filters on row numbers stay Spark's in this application. */
  def whyOff: Option[String] = ShuffleService.exchangesMissing

  /** The reasons why filters on row numbers stay Spark's. */
  def leftToSpark(optimized: LogicalPlan): Seq[String] =
    if (isOn) {
      optimized.collectWithSubqueries { case filter @ FirstRows(first) =>
        whyNot(filter, first)
      }.flatten
    } else {
      Nil
    }

  private def whyNot(filter: LogicalPlan, first: FirstRows): Option[String] = {
    val window = first.window
    val (keys, order) = (window.partitionSpec, window.orderSpec)
    def isComparable(key: Expression) =
      KeyTypes.hasOrder(key.dataType) && !SparkShims.hasCollation(key.dataType)
    val reasons: Seq[(Boolean, String)] = Seq(
      (!first.function.isInstanceOf[RowNumber]) ->
        s"${first.function.prettyName}() keeps all rows that are equal in the order",
      (window.windowExpressions.size > 1) -> "the window has other functions, too",
      // Spark 4 removes constants.
      (keys.isEmpty || keys.exists(_.foldable)) -> "no PARTITION BY, or a constant in it",
      (!keys.forall(isComparable)) -> "keys of a type that is not compared by bytes",
      (!(keys ++ order ++ first.others).forall(_.deterministic)) -> "it is not deterministic",
      filter.isStreaming -> "streaming input")
    reasons
      .collectFirst { case (true, why) => why }
      .orElse(whyOff)
  }

  private def planned(first: FirstRows): SparkPlan = {
    val window = first.window
    val keys = window.partitionSpec
    val input = window.child match {
      case WindowGroupLimit(_, order, function, limit, child) =>
        WindowGroupLimitExec(keys, order, function, limit, Partial, planLater(child))
      case child => planLater(child)
    }
    val latest = LatestRowsExec(keys, window.orderSpec.filterNot(_.child.foldable), input)
    JoinOrigin.set(latest, JoinOrigin.Rewritten("row_number() = 1 of a window"))
    val place = first.place
    val one = Alias(Literal(1), place.name)(place.exprId, place.qualifier, Some(place.metadata))
    val rows = ProjectExec(latest.output :+ one, latest)
    first.others.reduceOption(And).fold[SparkPlan](rows)(FilterExec(_, rows))
  }

  /**
   * A filter that keeps rows whose rank in a window is 1.
   *
   * @param place the column of the rank.
   * @param others the further predicates of the filter.
   */
  private case class FirstRows(
      window: Window,
      place: Attribute,
      function: Expression,
      others: Seq[Expression])

  private object FirstRows {

    def unapply(plan: LogicalPlan): Option[FirstRows] = plan match {
      case Filter(condition, window: Window) =>
        val conjuncts = splitConjunctivePredicates(condition)
        ranks(window).collectFirst {
          case (place, function) if conjuncts.exists(isFirst(_, place)) =>
            FirstRows(window, place, function, conjuncts.filterNot(isFirst(_, place)))
        }
      case _ => None
    }

    private def ranks(window: Window): Seq[(Attribute, Expression)] =
      window.windowExpressions.collect {
        case a @ Alias(WindowExpression(f @ (_: RowNumber | _: Rank | _: DenseRank), _), _) =>
          (a.toAttribute, f)
      }

    private def isFirst(condition: Expression, place: Attribute): Boolean = condition match {
      case EqualTo(l, r) => isNumber(l, place, 1, r) || isNumber(r, place, 1, l)
      case EqualNullSafe(l, r) => isNumber(l, place, 1, r) || isNumber(r, place, 1, l)
      case LessThanOrEqual(l, r) => isNumber(l, place, 1, r)
      case GreaterThanOrEqual(l, r) => isNumber(r, place, 1, l)
      case LessThan(l, r) => isNumber(l, place, 2, r)
      case GreaterThan(l, r) => isNumber(r, place, 2, l)
      case _ => false
    }

    private def isNumber(e: Expression, place: Attribute, number: Int, other: Expression): Boolean =
      e.semanticEquals(place) && other == Literal(number)
  }
}
