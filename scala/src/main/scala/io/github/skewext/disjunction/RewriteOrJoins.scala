package io.github.skewext.disjunction

import io.github.skewext.disjunction.OrJoinReason.Detailed
import io.github.skewext.facts.{ReadsInputFile, SafeToDuplicate, StableRows}
import io.github.skewext.join.{EstimatedRows, OpaqueSubquery, PlanCopies}
import io.github.skewext.platform.SkewConf
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Expression, SubqueryExpression}
import org.apache.spark.sql.catalyst.optimizer.RewritePredicateSubquery
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern._
import org.apache.spark.sql.skewext.SparkShims

/**
 * Rewrites joins such as `a JOIN b ON a.email = b.email OR a.phone = b.phone`, for which Spark
 * compares all pairs of rows, to joins on equal keys ([[OrJoinPlan]]).
 *
 * It runs once, when Spark has pushed predicates and pruned columns, so the statistics of the sides
 * are known. Spark makes joins of `EXISTS` and `IN` only later, so the rule calls Spark's own rule
 * for those filters with an OR in such a predicate.
 */
object RewriteOrJoins extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!plan.containsAnyPattern(OR, IN) || ReadsInputFile(plan)) plan
    else {
      val query = Query(
        isWrite = plan.exists(_.isInstanceOf[RowLevelWrite]),
        hasBarrier = plan.exists(SparkShims.isBarrier))
      plan.transformUpWithPruning(_.containsAnyPattern(JOIN, EXISTS_SUBQUERY, LIST_SUBQUERY)) {
        case join: Join => planned(join, query).getOrElse(join)
        case filter: Filter if filter.condition.exists(isCandidate) =>
          ofPredicates(filter, query).getOrElse(filter)
      }
    }

  /**
   * What is around the joins of a query.
   *
   * @param isWrite whether it is a MERGE, UPDATE or DELETE.
   * @param hasBarrier whether it has a barrier operator, which supports no union in its stage.
   */
  private case class Query(isWrite: Boolean, hasBarrier: Boolean)

  private def isCandidate(e: Expression): Boolean = e match {
    case subquery: SubqueryExpression =>
      subquery.containsAnyPattern(EXISTS_SUBQUERY, LIST_SUBQUERY) &&
      subquery.children.exists(_.containsAnyPattern(OR, IN))
    case _ => false
  }

  /** The filter as joins, if one of them is rewritten. */
  private def ofPredicates(filter: Filter, query: Query): Option[LogicalPlan] = {
    var changed = false
    // The plans of the predicates are on the right, and optimized already.
    def rewritten(plan: LogicalPlan): LogicalPlan = plan match {
      case OpaqueSubquery(hidden) => hidden
      case join: Join =>
        val above = join.copy(left = rewritten(join.left))
        val made = planned(above, query)
        changed ||= made.isDefined
        made.getOrElse(above)
      case other => other.mapChildren(rewritten)
    }
    val plan = rewritten(
      RewritePredicateSubquery(filter.copy(child = OpaqueSubquery(filter.child))))
    if (changed) Some(plan) else None
  }

  /** The reason why a join with OR stays Spark's, if it is one. */
  private[skewext] def whyNot(join: Join): Option[Detailed] = {
    val looked = join.clone().asInstanceOf[Join]
    planned(looked, Query(isWrite = false, hasBarrier = false))
    OrJoinReason.of(looked)
  }

  /** The plan of a join with OR; None if it is none, or stays Spark's for the reason in its tag. */
  private def planned(join: Join, query: Query): Option[LogicalPlan] = join match {
    case ExtractEquiJoinKeys(_, _, _, _, _, _, _, _) => None
    case _ =>
      OrCondition.of(join).flatMap { condition =>
        val plan = for {
          _ <- check(join, query)
          known <- condition
          plan = new OrJoinPlan(join, known)
          _ <- checkGain(join, plan)
          _ <- checkNesting(join, plan)
          _ <- checkReads(join, plan)
        } yield plan.plan
        plan.left.foreach(OrJoinReason.set(join, _))
        plan.toOption
      }
  }

  private def check(join: Join, query: Query): Either[Detailed, Unit] = {
    val condition = join.condition.get
    val reason =
      if (!conf.getConf(SkewConf.OR_JOIN_ENABLED)) Some(OrJoinReason.SwitchedOff.given)
      else if (TechniqueHint.asked(join).isDefined) {
        Some(OrJoinReason.Hint(TechniqueHint.asked(join).get))
      } else if (join.isStreaming) Some(OrJoinReason.Streaming.given)
      else if (query.isWrite) Some(OrJoinReason.RowLevelWrite.given)
      else if (query.hasBarrier && OrJoinPlan.hasUnion(join.joinType)) {
        Some(OrJoinReason.BarrierStage.given)
      } else if (!condition.deterministic) Some(OrJoinReason.NonDeterministic.given)
      else if (SubqueryExpression.hasSubquery(condition)) Some(OrJoinReason.Subquery.given)
      else None
    reason.toLeft(())
  }

  private def checkGain(join: Join, plan: OrJoinPlan): Either[Detailed, Unit] = {
    val rows = join.children.map(EstimatedRows.of)
    val copies = rows.zip(plan.copies).map { case (n, times) => n * times }.sum
    val least = BigInt(conf.getConf(SkewConf.OR_JOIN_MIN_PAIRS))
    Either.cond(
      rows.product * RowsOfLeastPairs >= least * copies.max(RowsOfLeastPairs),
      (),
      OrJoinReason.FewPairs(rows.mkString("about ", " and ", " rows")))
  }

  /** A row is copied, and looked up or shuffled, in the time of some 30 pairs. */
  private val RowsOfLeastPairs = 300000

  /** A chain of outer joins reads its first side twice for each of them, and so twice as often. */
  private def checkNesting(join: Join, plan: OrJoinPlan): Either[Detailed, Unit] = {
    val below = join.children.map(_.collect { case j: Join if isOfOr(j) => j }.size)
    val joins = below.zip(plan.reads).collect { case (n, reads) if reads > 1 => n * reads }.sum
    Either.cond(joins <= MostJoinsBelow, (), OrJoinReason.ManyReads(s"$joins joins"))
  }

  private def isOfOr(join: Join): Boolean =
    TechniqueHint.of(join).exists(_.isInstanceOf[TechniqueHint.OfOrJoin])

  /** With more of them, planning alone takes longer than Spark's joins of some thousand rows. */
  private val MostJoinsBelow = 64

  /** Whether sides may be read as often as the plan does, and the condition evaluated part by part. */
  private def checkReads(join: Join, plan: OrJoinPlan): Either[Detailed, Unit] = {
    // The optimizer, which the check of stable rows runs, would ask again for each join below.
    def isKnown(side: LogicalPlan) =
      side.exists(OrJoinReason.of(_).exists(_.reason == OrJoinReason.NotStable))
    def isFixed(side: LogicalPlan) =
      !isKnown(side) && side.deterministic && PlanCopies.isPossible(side) &&
        StableRows.areInCopies(SparkSession.active, side)
    val unstable = join.children.zip(Seq("left", "right")).zip(plan.reads).collectFirst {
      case ((side, name), reads) if reads > 1 && !isFixed(side) =>
        OrJoinReason.NotStable(s"the $name side")
    }
    join.joinType match {
      case _: InnerLike => Right(())
      // A row that an earlier part matches is compared with the later ones, too.
      case _ if !SafeToDuplicate(join.condition.get) =>
        Left(OrJoinReason.MayFail(OrJoinPlan.shown(join.condition.get)))
      case _ => unstable.toLeft(())
    }
  }
}
