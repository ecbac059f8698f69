package org.apache.spark.sql.skewext

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.skewext.ui.JoinsExplainer
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

  /** As if a query with this number had ended, with a stack of so many bytes; whatever it throws. */
  def explainInThread(session: SparkSession, query: QueryExecution, id: Long, stack: Long): Unit = {
    val end = SparkListenerSQLExecutionEnd(id, 0)
    end.qe = query
    var thrown: Option[Throwable] = None
    val Seq(explainer) = session.sparkContext.listenerBus.findListenersByClass[JoinsExplainer]()
    val thread = new Thread(null, () => explainer.onOtherEvent(end), "explain", stack)
    thread.setUncaughtExceptionHandler((_, e) => thrown = Some(e))
    thread.start()
    thread.join()
    thrown.foreach(throw _)
  }

  def lastQuery(session: SparkSession): Long =
    session.sharedState.statusStore.executionsList().map(_.executionId).max
}
