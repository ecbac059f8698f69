package org.apache.spark.sql.skewext

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.skewext.ui.{ExplainedQuery, JoinsExplainer}
import org.apache.spark.status.KVUtils

/** What our tab has of a running application; what it is kept in is `private[spark]`. */
object TestExplained {

  /** By the numbers of queries. */
  def of(session: SparkSession): Map[Long, String] = KVUtils
    .viewToSeq(session.sparkContext.statusStore.store.view(classOf[ExplainedQuery]))
    .map(query => query.executionId -> query.explanation)
    .toMap

  /** How many listeners of ours a context has. */
  def listeners(session: SparkSession): Int =
    session.sparkContext.listenerBus.findListenersByClass[JoinsExplainer]().size

  def lastQuery(session: SparkSession): Long =
    session.sharedState.statusStore.executionsList().map(_.executionId).max
}
