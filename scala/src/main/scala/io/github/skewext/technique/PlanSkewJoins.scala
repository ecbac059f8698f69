package io.github.skewext.technique

import io.github.skewext.platform.Guard
import io.github.skewext.technique.hint.{TechniqueHint, TechniqueOptions}

import org.apache.spark.sql.catalyst.optimizer.{EliminateOuterJoin, PushDownPredicates}
import org.apache.spark.sql.catalyst.plans.logical.{CTERelationDef, Join, LogicalPlan, RebalancePartitions, RepartitionOperation}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{CTE, JOIN}
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.{AnalysisException, SparkSession}

/**
 * Replaces joins by the plans of the requested techniques. Until then, and if a technique refuses a
 * join, it is Spark's join. Some techniques let no predicate pass. So a join is planned only after
 * Spark has pushed the predicates above it, and has replaced outer joins whose unmatched rows they
 * drop. Spark needs several iterations for that, and calls this rule at the end of each.
 */
object PlanSkewJoins extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (plan.exists(isWanted)) {
      val pushed = EliminateOuterJoin(PushDownPredicates(plan))
      if (pushed.fastEquals(plan)) allPlanned(plan) else pushed
    } else {
      plan
    }

  private def isWanted(node: LogicalPlan): Boolean =
    TechniqueHint.of(node).exists(_.isInstanceOf[TechniqueHint.Wanted])

  private def allPlanned(plan: LogicalPlan): LogicalPlan = {
    val known = plan.transformWithPruning(_.containsPattern(CTE)) {
      case definition: CTERelationDef => definition.mapChildren(whereWanted(_)(refusedThere))
    }
    whereWanted(withBarriersKnown(known))(planned)
  }

  /** Marks the requests in stages of barrier operators. */
  private def withBarriersKnown(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsPattern(JOIN)) {
      case barrier if SparkShims.isBarrier(barrier) => barrier.mapChildren(inBarrierStage)
    }

  /** Only a repartition certainly shuffles: Spark may remove a sort, or broadcast a side of a join. */
  private def inBarrierStage(plan: LogicalPlan): LogicalPlan = plan match {
    case repartition: RepartitionOperation if repartition.shuffle => repartition
    case rebalance: RebalancePartitions => rebalance
    case join: Join =>
      val marked = TechniqueHint.of(join) match {
        case Some(wanted: TechniqueHint.Wanted) if !wanted.inBarrierStage =>
          TechniqueHint.on(join, wanted.copy(inBarrierStage = true))
        case _ => join
      }
      marked.mapChildren(inBarrierStage)
    case other => other.mapChildren(inBarrierStage)
  }

  private def whereWanted(plan: LogicalPlan)(
      change: (Join, TechniqueHint.Wanted) => LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case join: Join =>
      TechniqueHint.of(join) match {
        case Some(wanted: TechniqueHint.Wanted) => change(join, wanted)
        case _ => join
      }
    }

  /**
   * Refuses a technique in a CTE that several references read and that Spark computes once. Spark
   * confuses its columns if their ids change.
   */
  private def refusedThere(join: Join, wanted: TechniqueHint.Wanted): LogicalPlan =
    TechniqueHint.on(
      join,
      TechniqueHint.Refused(wanted.technique, TechniqueReason.CommonTable.given))

  private def planned(join: Join, wanted: TechniqueHint.Wanted): LogicalPlan =
    plan(SparkSession.active, join, wanted) match {
      case Right(made) => made
      case Left(reason) =>
        // Without its details, which may be others in each batch of a stream.
        Guard.logOnce(
          s"skew_join by ${wanted.technique} is Spark's own join: ${reason.reason.text}.")
        TechniqueHint.on(join, TechniqueHint.Refused(wanted.technique, reason))
    }

  /**
   * The plan of a join by the requested technique, or the reason for refusal. A failure affects only
   * this join, not the others of the query.
   */
  def plan(
      session: SparkSession,
      join: Join,
      wanted: TechniqueHint.Wanted): Either[TechniqueReason.Detailed, LogicalPlan] =
    Guard.protect[Either[TechniqueReason.Detailed, LogicalPlan]](
      s"planning a join by ${wanted.technique}",
      Left(TechniqueReason.Failed.given)) {
      try {
        unprotected(session, join, wanted).map(saying)
      } catch {
        case e: AnalysisException => Left(TechniqueReason.WrongOption(e.getMessage))
      }
    }

  private def unprotected(
      session: SparkSession,
      join: Join,
      wanted: TechniqueHint.Wanted): Either[TechniqueReason.Detailed, TechniquePlan] =
    for {
      technique <- SkewTechniques
        .named(wanted.technique)
        .toRight(TechniqueReason.WrongOption(s"there is no technique ${wanted.technique}"))
      request <- TechniqueRequest
        .of(session, join, wanted.copy(technique = technique.name))
      made <- request.asHinted.fold(
        technique.plan(if (wanted.prepared) request else prepared(technique, request)))(Right(_))
    } yield made

  private def prepared(technique: SkewTechnique, request: TechniqueRequest): TechniqueRequest = {
    TechniqueOptions.check(technique.name, technique.optionNames, request.options)
    request.copy(wanted = request.wanted.copy(options = technique.preparedForHint(request)))
  }

  /** The plan with the technique's description on each of its joins. */
  private def saying(made: TechniquePlan): LogicalPlan = made.plan.transform {
    case join: Join =>
      TechniqueHint.of(join) match {
        case Some(part @ TechniqueHint.Made(_, _, "", _)) =>
          TechniqueHint.on(join, part.copy(how = made.how))
        case _ => join
      }
    case join: MarkedBroadcastJoin if join.made.how.isEmpty =>
      join.copy(made = join.made.copy(how = made.how))
  }
}
