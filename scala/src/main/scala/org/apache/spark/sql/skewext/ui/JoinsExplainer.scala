package org.apache.spark.sql.skewext.ui

import io.github.skewext.explain.{Explainer, Explanation, ExplanationJson}
import io.github.skewext.platform.{Guard, SkewConf}

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.execution.{CommandResultExec, QueryExecution}
import org.apache.spark.sql.skewext.{ExplainedQueries, SparkListenerJoinsExplained, SqlInternals}

/**
 * Explains the joins of each query when it has ended, from its plans.
 *
 * It listens in the queue of the event log, whose thread alone may write to that log. If it posted
 * an event instead, that of an application's last query would be lost: a context that is stopping
 * accepts no events while its queues are emptied.
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
    // A query that failed early is not planned. Do not plan it for this.
    val wanted = conf.getConf(SkewConf.UI_ENABLED) && SkewConf.enabled(conf) &&
      query.tracker.phases.contains(QueryPlanningTracker.PLANNING)
    if (wanted && !isResultOfCommand(query)) {
      // An error in this thread would stop the application.
      val found = Guard.shallow("the tab in Spark's UI") {
        SqlInternals.withActive(query.sparkSession)(Explainer.explainRan(query))
      }
      found.filter(_.joins.nonEmpty).map { all =>
        val outlines = ExplanationJson.mapped(all.copy(joins = all.joins.take(MaxJoins)), cut(_))
        val json = outlines.json
        if (json.length <= MaxQueryLength) json
        else Explanation(outlines.notes, outlines.joins.map(_.copy(inputs = Nil))).json
      }
    } else {
      None
    }
  }

  /** The command itself was a query before, with the same joins. */
  private def isResultOfCommand(query: QueryExecution): Boolean =
    query.executedPlan.isInstanceOf[CommandResultExec]
}

private object JoinsExplainer {

  /** Like Spark in plans. */
  private def cut(text: String): String =
    if (text.length > MaxLength) text.take(MaxLength) + "..." else text

  val MaxJoins = 100
  val MaxLength = 1000

  /** The driver keeps this for as many queries as Spark remembers. Inputs take most of it. */
  val MaxQueryLength: Int = 1 << 17
}
