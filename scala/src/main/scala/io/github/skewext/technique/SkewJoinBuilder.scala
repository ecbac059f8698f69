package io.github.skewext.technique

import io.github.skewext.internal.LoadedExtension
import io.github.skewext.plan.{TechniqueHint, TechniqueOptions, TechniqueReason}

import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.optimizer.EliminateResolvedHint
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.{Column, DataFrame, SparkSession}

/**
 * Builds a join by a technique: Spark's own join, analyzed as usual, with a hint that names the
 * technique. Errors are reported at once, not when the query runs.
 */
private[skewext] object SkewJoinBuilder {

  def build(
      left: DataFrame,
      right: DataFrame,
      on: Either[Seq[String], Column],
      how: String,
      technique: String,
      given: TechniqueOptions): DataFrame = {
    val session = left.sparkSession
    val named = SkewTechniques
      .named(technique)
      .getOrElse(
        fail(s"There is no technique '$technique'; the techniques are " +
          s"${SkewTechniques.all.map(_.name).mkString(", ")}."))
    TechniqueOptions.check(named.name, named.optionNames, given)
    if (how.equalsIgnoreCase("cross")) {
      fail("skew_join does not support cross joins, because they have no key.")
    }
    val joined = on match {
      case Left(names) => left.join(right, names, how)
      case Right(condition) => left.join(right, condition, how)
    }
    // Spark takes its own hints from the sides of joins that have none yet.
    val plan = EliminateResolvedHint(joined.queryExecution.analyzed)
    if (plan.isStreaming) fail("skew_join supports only batch DataFrames.")
    val join = topJoin(plan)
    SqlInternals.withActive(session) {
      val options = TechniqueRequest
        .of(session, join, named.name, given)
        .fold(
          reason => refuse(named, reason),
          request => if (request.asHinted.isDefined) given else named.prepared(request))
      val wanted = TechniqueHint.Wanted(named.name, options, prepared = true)
      // The sides as the technique will see them, as far as that is known by now.
      val asPlanned =
        join.copy(left = optimized(session, join.left), right = optimized(session, join.right))
      PlanSkewJoins.plan(session, asPlanned, wanted).left.foreach(refuse(named, _))
      // A session that was started without us has no rule that would do it later.
      val done =
        if (LoadedExtension.isIn(session)) TechniqueHint.on(join, wanted)
        else PlanSkewJoins.plan(session, join, wanted).fold(refuse(named, _), PlanSkewJoins.saying)
      SqlInternals.dataFrame(session, plan.transformDown { case j: Join if j eq join => done })
    }
  }

  /**
   * Optimizes a side alone, and keeps its column ids. The optimizer may remove an alias with an
   * unchanged name, and then the columns have other ids.
   */
  private def optimized(session: SparkSession, side: LogicalPlan): LogicalPlan = {
    val plan = session.sessionState.executePlan(side).optimizedPlan
    if (plan.outputSet == side.outputSet) plan
    else {
      Project(
        plan.output.zip(side.output).map { case (now, before) =>
          if (now.exprId == before.exprId) now
          else Alias(now, before.name)(exprId = before.exprId)
        },
        plan)
    }
  }

  /** The join that Spark has made of a call of `join`. */
  private def topJoin(plan: LogicalPlan): Join = plan match {
    case join: Join => join
    case Project(_, child) => topJoin(child)
    case other =>
      fail(s"skew_join cannot do this join, because Spark has analyzed it to a ${other.nodeName}.")
  }

  private def refuse(technique: SkewTechnique, reason: TechniqueReason.Detailed): Nothing =
    fail(s"The technique ${technique.name} cannot do this join: ${reason.text}.")

  private def fail(message: String): Nothing = throw SqlInternals.analysisError(message)
}
