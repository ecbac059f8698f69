package io.github.skewext.explain.report

import scala.util.Try

import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser

/**
 * Recognizes the condition of a join that tests all pairs of rows, from the text of its operator. An
 * event log has no other form of it. A plan may still refuse a join with such a condition.
 */
private[skewext] object PairConditions {

  /** A range join. */
  val RangeJoin = "range"

  /** A join with OR, each part of it with an equality of both sides. */
  val OrJoin = "or"

  private val OfNestedLoop =
    """BroadcastNestedLoopJoin Build(?:Left|Right), \w+(?:\(.*?\))?, (.*)""".r
  private val OfProduct = """CartesianProduct (.*)""".r
  private val Id = """#(\d+)L?""".r

  /**
   * @param text the description of the join.
   * @param sides the descriptions of all operators on its left side, and on its right side.
   */
  def form(text: String, sides: => Seq[Seq[String]]): Option[String] = {
    val condition = text match {
      case OfNestedLoop(condition) => Some(condition)
      case OfProduct(condition) => Some(condition)
      case _ => None
    }
    // The ids become a part of the names, so that Spark's parser accepts them.
    val parsed = condition.flatMap { each =>
      Try(CatalystSqlParser.parseExpression(Id.replaceAllIn(each, "_$1"))).toOption
    }
    val columns = ids(condition.toSeq)
    for {
      each <- parsed
      Seq(left, right) <- Some(sides.map(ids))
      // Descriptions of leaves and of reused exchanges may lack the ids of a side.
      ofLeft = if (columns.exists(left)) columns.filter(left) else columns -- right
      form <- new PairConditions(ofLeft).form(each)
    } yield form
  }

  private def ids(texts: Seq[String]): Set[String] =
    texts.flatMap(Id.findAllMatchIn(_).map(_.group(1))).toSet
}

private class PairConditions(left: Set[String]) extends PredicateHelper {
  import PairConditions._

  def form(condition: Expression): Option[String] = {
    val conjuncts = splitConjunctivePredicates(condition)
    val parts = conjuncts.map(splitDisjunctivePredicates).filter(_.size > 1)
    if (parts.exists(_.forall(hasEqualKeys))) Some(OrJoin)
    else if (conjuncts.flatMap(directions).distinct.size == 2) Some(RangeJoin)
    else None
  }

  private def hasEqualKeys(part: Expression): Boolean =
    splitConjunctivePredicates(part).exists {
      case EqualTo(one, other) => isOneSided(one, other)
      case EqualNullSafe(one, other) => isOneSided(one, other)
      case _ => false
    }

  private def isOneSided(one: Expression, other: Expression): Boolean =
    Set(sides(one), sides(other)) == Set(Set(true), Set(false))

  /** For each comparison of both sides, whether the left one is the smaller one. */
  private def directions(condition: Expression): Seq[Boolean] = condition match {
    case Or(one, other) =>
      directions(one) ++ directions(other)
    case LessThan(lower, upper) => direction(lower, upper)
    case LessThanOrEqual(lower, upper) => direction(lower, upper)
    case GreaterThan(upper, lower) => direction(lower, upper)
    case GreaterThanOrEqual(upper, lower) => direction(lower, upper)
    case _ => Nil
  }

  private def direction(lower: Expression, upper: Expression): Seq[Boolean] =
    if (isOneSided(lower, upper)) Seq(sides(lower).head)
    else if (sides(lower).size == 2 && sides(upper).isEmpty) {
      // The difference of both sides: within a distance, or at most the bound.
      if (isDistance(lower)) Seq(true, false) else Seq(true)
    } else if (sides(lower).isEmpty && sides(upper).size == 2) Seq(false)
    else Nil

  private def isDistance(e: Expression): Boolean = e match {
    case function: UnresolvedFunction => function.nameParts == Seq("abs")
    case _ => false
  }

  /** The sides whose columns an expression has: true is the left one. */
  private def sides(e: Expression): Set[Boolean] =
    e.collect { case column: UnresolvedAttribute =>
      left(column.name.reverse.takeWhile(_ != '_').reverse)
    }.toSet
}
