package org.apache.spark.sql.skewext

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.internal.StaticSQLConf.UI_RETAINED_EXECUTIONS
import org.apache.spark.status.ElementTrackingStore
import org.apache.spark.status.KVUtils.{KVIndexParam, viewToSeq}

/** The content of the event. History servers store it on disk, by its getters. */
private[spark] class ExplainedQuery(@KVIndexParam val executionId: Long, val explanation: String)

/**
 * Stores skewext's events in the store of Spark's UI, for a running application and for an event
 * log. It keeps as many queries as Spark does.
 */
private[spark] class ExplainedQueries(conf: SparkConf, store: ElementTrackingStore)
    extends SparkListener {

  private val retained = conf.get(UI_RETAINED_EXECUTIONS)

  store.addTrigger(classOf[ExplainedQuery], retained.toLong) { count =>
    val excess = (count - retained).toInt
    if (excess > 0) {
      // In the order of their numbers, so the oldest first.
      viewToSeq(store.view(classOf[ExplainedQuery]), excess)(_ => true)
        .foreach(query => store.delete(query.getClass, query.executionId))
    }
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case SparkListenerJoinsExplained(id, explanation) =>
      store.write(new ExplainedQuery(id, explanation), checkTriggers = true)
    case _ =>
  }
}

/**
 * The explanation of the joins of a query that has run. In the event log it follows the end of the
 * query, under the name of this class. A history server without the jar skips it with a warning.
 *
 * @param explanation JSON, see [[io.github.skewext.explain.ExplanationJson]]
 */
case class SparkListenerJoinsExplained(executionId: Long, explanation: String)
    extends SparkListenerEvent
