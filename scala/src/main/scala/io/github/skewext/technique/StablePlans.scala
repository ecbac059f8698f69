package io.github.skewext.technique

import scala.util.Try

import io.github.skewext.skew.StableRows

import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.QueryExecution

/** Whether sides may be read twice: what is not known to give the same rows again is refused. */
private[technique] object StablePlans {

  def check(request: TechniqueRequest, sides: Seq[BuildSide]): Either[TechniqueReason.Given, Unit] =
    sides.find(side => !areStable(request, request.plan(side))) match {
      case Some(side) =>
        Left(
          TechniqueReason.NotStable(
            s"the ${BroadcastSide.nameOf(side)} side; cache it, or write it to a table first"))
      case None => Right(())
    }

  private def areStable(request: TechniqueRequest, plan: LogicalPlan): Boolean = Try {
    val state = request.session.sessionState
    // In the middle of its optimization a plan has nodes that cannot be planned yet.
    val optimized = state.optimizer.execute(plan.clone())
    StableRows.areIn(QueryExecution.createSparkPlan(request.session, state.planner, optimized))
  }.getOrElse(false)
}
