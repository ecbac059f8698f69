package org.apache.spark.sql.skewext.ui

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.internal.StaticSQLConf.UI_RETAINED_EXECUTIONS
import org.apache.spark.status.ElementTrackingStore
import org.apache.spark.status.KVUtils.{KVIndexParam, viewToSeq}

/** As the event has it. History servers keep it on disk, by its getters. */
private[spark] class ExplainedQuery(@KVIndexParam val executionId: Long, val explanation: String)

/**
 * Keeps events of ours where Spark's UI keeps its own, of a running application as well as from an event
 * log, and of as many queries as Spark remembers.
 */
private[spark] class ExplainedQueries(conf: SparkConf, store: ElementTrackingStore)
    extends SparkListener {

  private val retained = conf.get(UI_RETAINED_EXECUTIONS)

  store.addTrigger(classOf[ExplainedQuery], retained.toLong) { count =>
    val excess = (count - retained).toInt
    if (excess > 0) {
      // By their numbers, and so the oldest first.
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
