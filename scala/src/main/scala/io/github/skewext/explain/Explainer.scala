package io.github.skewext.explain

import scala.util.Try
import scala.util.control.NonFatal

import io.github.skewext.asof.RewriteSparkAsOfJoins
import io.github.skewext.bucket.PruneBuckets
import io.github.skewext.join.range.DropRangeHints
import io.github.skewext.join.{JoinTypeName, MultiFullJoin}
import io.github.skewext.latest.RewriteRowNumbers
import io.github.skewext.platform.{ExtensionPoints, Guard, LoadedExtension, SkewConf, SparkLine}

import org.apache.spark.sql.catalyst.plans.logical.{AsOfJoin, Join, LogicalPlan}
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution, SparkPlan}
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.{AnalysisException, SparkSession}

/**
 * Explains how the joins of a query are planned. If the query is not planned yet, this plans it,
 * like `df.explain` does. It runs nothing, and changes nothing.
 *
 * It reads the plan that Spark runs, which shows rewrites, predicates and splits. The
 * operators are linked to the nodes of the optimized query, and our rules have left their reasons
 * on both.
 */
object Explainer {

  def explain(query: QueryExecution): Explanation = explain(query, plansCommands = true)

  /** Explains a query that has run, from its existing plans. It plans nothing. */
  def explainRan(query: QueryExecution): Explanation = explain(query, plansCommands = false)

  private def explain(query: QueryExecution, plansCommands: Boolean): Explanation =
    if (SparkLine.isOurs) {
      val explanation = new Explainer(query, plansCommands).explanation
      val conf = query.sparkSession.sessionState.conf
      if (conf.stringRedactionPattern.isEmpty) explanation
      else ExplanationJson.mapped(explanation, SqlInternals.redacted(conf))
    } else {
      Explanation(Seq(SparkLine.unsupported), Nil)
    }

  /** The failures of our rules in a session. Their queries are unknown. */
  private[explain] def failureNotes(session: SparkSession): Seq[String] =
    Guard.failuresIn(session).map { case (what, error) =>
      s"In this session $what failed, and left the plan as it was, of this query or of another: " +
        s"$error. The driver's log says where."
    }
}

/** @param plansCommands whether to plan queries in commands, as Spark does when a command runs. */
private class Explainer(query: QueryExecution, plansCommands: Boolean) {

  private val session = query.sparkSession
  private val conf = session.sessionState.conf
  private val loaded = LoadedExtension.isIn(session)

  private def failureNotes = Explainer.failureNotes(session)

  private val outlines = new JoinOutlines(session, plansAgain = true)

  private def pruningOff = outlines.off.orElse(Origins.whyExcluded(conf, PruneBuckets.ruleName))

  // Queries in commands. Spark plans them when the command runs.
  private var commandQueries = Seq.empty[QueryExecution]

  def explanation: Explanation = planned match {
    case Right(plan) =>
      val found =
        PlannedJoin.in(plan, logical => if (plansCommands) plannedInCommand(logical) else None)
      Explanation(
        sessionNotes ++ failureNotes ++ Photon.note(plan) ++ goneNote(found.gone) ++
          asOfNotes ++ rowNumberNotes ++ rangeHintNotes,
        explained(found.joins),
        found.scans.zipWithIndex.map { case ((scan, place), i) =>
          ExplainedScans.of(scan, place, i + 1, pruningOff)
        })
    case Left(error) =>
      val note = s"The query could not be planned: ${firstLine(error)}"
      Explanation((sessionNotes ++ failureNotes) :+ note, unplanned)
  }

  /**
   * The plan. An error in the query is thrown to the user; an error of the planner is explained.
   */
  private def planned: Either[Throwable, SparkPlan] =
    try {
      Right(query.executedPlan)
    } catch {
      case e: AnalysisException => throw e
      case NonFatal(e) => Left(e)
    }

  private def plannedInCommand(logical: LogicalPlan): Option[SparkPlan] = Try {
    val inner = session.sessionState.executePlan(logical, CommandExecutionMode.SKIP)
    val plan = inner.executedPlan
    commandQueries :+= inner
    plan
  }.toOption

  private def firstLine(error: Throwable): String = {
    val messages = Guard.causes(error).flatMap(e => Option(e.getMessage)).toSeq
    messages.lastOption.getOrElse(error.toString).split("\n").head
  }

  private def sessionNotes: Seq[String] = {
    val registration =
      if (loaded) {
        None
      } else if (LoadedExtension.canPlanIn(session)) {
        Some(
          "skewext was registered in a running session: what can be had only from the start is " +
            "missing, so no join of Spark's is rewritten, no partition is split, and rows with a " +
            "null key are not spread. Start the session with " +
            s"spark.sql.extensions=${LoadedExtension.className} to have them.")
      } else {
        Some(
          "The session was started without skewext, so Spark plans all joins alone: " +
            s"${LoadedExtension.whyMissing(session)}. Start it with " +
            s"spark.sql.extensions=${LoadedExtension.className}, or register skewext in it.")
      }
    val switchedOff =
      if (SkewConf.enabled(conf)) None
      else Some(s"${SkewConf.ENABLED.key} is false, so Spark plans all joins alone.")
    registration.toSeq ++ switchedOff ++ ExtensionPoints.limits
  }

  private def goneNote(gone: Int): Option[String] = if (gone > 0) {
    Some(
      s"${if (gone == 1) "A join is" else s"$gone joins are"} not in the plan any more that Spark " +
        "began with: an input turned out to be empty, or the same had been computed before.")
  } else {
    None
  }

  /** Spark's optimizer leaves no trace of its as-of joins. */
  private def asOfNotes: Seq[String] =
    if (!loaded || outlines.off.isDefined) {
      Nil
    } else {
      query.analyzed.collectWithSubqueries { case join: AsOfJoin => join }.flatMap { join =>
        RewriteSparkAsOfJoins.rewritten(join).left.toOption.map { why =>
          s"An as-of join of Spark's is not rewritten: $why."
        }
      }
    }

  private def rangeHintNotes: Seq[String] =
    if (!loaded) Nil
    else {
      DropRangeHints.in(query.logical).map { hint =>
        s"The hint $hint has no effect: range joins of skewext have no bins, and need no hint."
      }
    }

  private def rowNumberNotes: Seq[String] =
    if (!loaded || outlines.off.isDefined) Nil
    else {
      RewriteRowNumbers.leftToSpark(query.optimizedPlan).map { why =>
        s"The first rows of a window's partitions are Spark's: $why."
      }
    }

  private def explained(found: Seq[PlannedJoin]): Seq[ExplainedJoin] = {
    val numbers = found.zipWithIndex.flatMap { case (join, n) => join.joins.map(_.plan -> (n + 1)) }
    val inputs = new ExplainedInputs(
      (query +: commandQueries).map(_.analyzed),
      plan => numbers.collectFirst { case (join, n) if join eq plan => n })
    found.zipWithIndex.map { case (join, n) =>
      outlines
        .of(join, n + 1)
        .copy(inputs = join.multiJoin match {
          case Some(multiJoin) => inputs.of(multiJoin, join.joins.head.logical)
          case None =>
            join.inputs.zipWithIndex.map { case (input, i) =>
              ExplainedAsOf.named(join.joins.head.plan, inputs.of(input, i))
            }
        })
    }
  }

  /** The joins of the optimized query, if optimization succeeded. */
  private def unplanned: Seq[ExplainedJoin] = {
    val joins = Try(query.optimizedPlan.collectWithSubqueries {
      case join: MultiFullJoin => (Operators.describe(join), Origins.ofMultiJoin(Some(join)))
      case join: Join =>
        (
          s"${JoinTypeName.lower(join.joinType)} join",
          Origins.ofSparks(Seq(join), outlines.off, plansAgain = true))
    }).getOrElse(Nil)
    joins.zipWithIndex.map { case ((title, origin), n) =>
      ExplainedJoin(n + 1, Place.Query, title, Nil, origin, Nil, None, Nil)
    }
  }
}
