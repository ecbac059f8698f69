package io.github.skewext.technique

import io.github.skewext.platform.{LoadedExtension, SkewConf}
import io.github.skewext.technique.hint.{TechniqueHint, TechniqueOptions}

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
    if (how.equalsIgnoreCase("cross")) {
      fail("skew_join does not support cross joins, because they have no key.")
    }
    val joined = on match {
      case Left(names) => left.join(right, names, how)
      case Right(condition) => left.join(right, condition, how)
    }
    val session = left.sparkSession
    val analyzed = joined.queryExecution.analyzed
    SqlInternals.dataFrame(
      session,
      byTechnique(session, analyzed, technique, given, runsJobs = true))
  }

  /**
   * An analyzed query with its uppermost join by a technique, or as it is if skewext is switched
   * off. All other nodes stay, and so do the attributes.
   *
   * @param runsJobs whether the technique may run jobs to find hot keys
   */
  def byTechnique(
      session: SparkSession,
      query: LogicalPlan,
      technique: String,
      given: TechniqueOptions,
      runsJobs: Boolean): LogicalPlan = {
    val named = SkewTechniques
      .named(technique)
      .getOrElse(
        fail(s"There is no technique '$technique'; the techniques are " +
          s"${SkewTechniques.all.map(_.name).mkString(", ")}."))
    TechniqueOptions.check(named.name, named.optionNames, given)
    // Spark takes its own hints from the sides of joins that have none yet.
    val plan = EliminateResolvedHint(query)
    if (plan.isStreaming) fail("skew_join supports only batch DataFrames.")
    val join = topJoin(plan)
    if (!SkewConf.enabled(session.sessionState.conf)) query
    else
      SqlInternals.withActive(session) {
        val options = TechniqueRequest
          .of(session, join, TechniqueHint.Wanted(named.name, given, prepared = false))
          .fold(
            reason => refuse(named, reason),
            request =>
              if (request.asHinted.isDefined) given
              else if (runsJobs) named.prepared(request)
              else named.preparedForHint(request))
        val wanted = TechniqueHint.Wanted(
          named.name,
          options,
          prepared = true,
          called = TechniqueRequest.called(join))
        // Hot keys may be wrong.
        if (named.mayRefuse || options.hotKeys.isDefined) check(session, join, named, wanted)
        // A session that was started without us has no rule that would do it later.
        val done =
          if (LoadedExtension.isIn(session)) TechniqueHint.on(join, wanted)
          else PlanSkewJoins.plan(session, join, wanted).fold(refuse(named, _), identity)
        plan.transformDown { case j: Join if j eq join => done }
      }
  }

  /** Plans the join, as far as its sides are known by now, to refuse it early. */
  private def check(
      session: SparkSession,
      join: Join,
      technique: SkewTechnique,
      wanted: TechniqueHint.Wanted): Unit = {
    // A reference to a common table cannot be optimized without the query around it.
    val tables = join.collectWithSubqueries { case table: CTERelationDef => table.id }.toSet
    if (join.collectWithSubqueries { case ref: CTERelationRef => ref.cteId }.forall(tables)) {
      val asPlanned =
        join.copy(left = optimized(session, join.left), right = optimized(session, join.right))
      PlanSkewJoins.plan(session, asPlanned, wanted).left.foreach(refuse(technique, _))
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

  /** The join of a call of `join`, or of a query that is nothing but a join. */
  private def topJoin(plan: LogicalPlan): Join = plan match {
    case join: Join => join
    case Project(_, child) => topJoin(child)
    case SubqueryAlias(_, child) => topJoin(child)
    case view: View => topJoin(view.child)
    case other => fail(s"skew_join needs a join, not the operator ${other.nodeName}.")
  }

  private def refuse(technique: SkewTechnique, reason: TechniqueReason.Detailed): Nothing =
    fail(s"The technique ${technique.name} cannot do this join: ${reason.text}.")

  private def fail(message: String): Nothing = throw SqlInternals.analysisError(message)
}
