package org.apache.spark.sql.skewext.ui

import io.github.skewext.explain.{Explainer, ExplanationJson}
import io.github.skewext.internal.{Guard, SkewConf}

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.execution.{CommandResultExec, QueryExecution}
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.util.Utils

/**
 * Explains the joins of each query when it has come to its end, from the plans that it leaves.
 *
 * It listens in the queue of the event log, and so in the one thread that may write to that log. An event
 * that is posted instead would be lost for the last query of an application, as nothing more can be
 * posted when a context stops, while queues are emptied.
 */
private[spark] class JoinsExplainer(context: SparkContext, kept: ExplainedQueries)
    extends SparkListener {
  import JoinsExplainer._

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd if end.qe != null =>
      Guard.protect("explaining a query for Spark's UI", ()) {
        explanation(end.qe).foreach { json =>
          val explained = SparkListenerJoinsExplained(end.executionId, json)
          kept.onOtherEvent(explained)
          context.eventLogger.foreach(_.onOtherEvent(explained))
        }
      }
    case _ =>
  }

  private def explanation(query: QueryExecution): Option[String] = {
    val conf = query.sparkSession.sessionState.conf
    // A query that has failed early is not planned, and shall not be for this.
    val wanted = conf.getConf(SkewConf.UI_ENABLED) && SkewConf.enabled(conf) &&
      query.tracker.phases.contains(QueryPlanningTracker.PLANNING)
    if (wanted && !isResultOfCommand(query)) {
      val found = shallow(SqlInternals.withActive(query.sparkSession)(Explainer.explainRan(query)))
      found.filter(_.joins.nonEmpty).map { all =>
        // As Spark shows plans: without what is secret, and not at any length.
        def shown(text: String): String = {
          val redacted = Utils.redact(conf.stringRedactionPattern, text)
          if (redacted.length > MaxLength) redacted.take(MaxLength) + "..." else redacted
        }
        ExplanationJson.of(all.copy(joins = all.joins.take(MaxJoins)), shown(_))
      }
    } else {
      None
    }
  }

  /** The command has been a query before, with the same joins. */
  private def isResultOfCommand(query: QueryExecution): Boolean =
    query.executedPlan.isInstanceOf[CommandResultExec]

  /** None of a plan that is too deep for this thread: an error here would stop the application. */
  private def shallow[T](body: => T): Option[T] =
    try {
      Some(body)
    } catch {
      case _: StackOverflowError =>
        Guard.logOnce("skewext: a plan is too deep to be explained in Spark's UI.")
        None
    }
}

private object JoinsExplainer {
  val MaxJoins = 100
  val MaxLength = 1000
}
