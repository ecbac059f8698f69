package org.apache.spark.sql.skewext

import java.util.NoSuchElementException
import java.util.concurrent.{CountDownLatch, TimeUnit, TimeoutException}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.ui.{SQLAppStatusStore, SQLExecutionUIData, SparkPlanGraph}
import org.apache.spark.status.api.v1.{StageData, TaskData}
import org.apache.spark.status.{AppStatusStore, ElementTrackingStore}
import org.apache.spark.ui.scope.RDDOperationCluster

/**
 * What Spark's listeners know of queries and of their tasks, the same that its UI shows, and there
 * without the UI, too. Lives here because the stores that they write to are `private[spark]`.
 */
final class QueryStatus private[skewext] (app: AppStatusStore, sql: SQLAppStatusStore) {

  /** The queries that are known, in the order in which they began. */
  def queries: Seq[QuerySummary] = sql.executionsList().sortBy(_.executionId).map { query =>
    QuerySummary(
      query.executionId,
      query.description,
      query.submissionTime,
      query.completionTime.map(_.getTime),
      found(plan(query.executionId).allNodes.map(_.name).toSeq).getOrElse(Nil))
  }

  def query(id: Long): Option[SQLExecutionUIData] = sql.execution(id)

  /** The plan of a query, with adaptive execution the one that it ended with. */
  def plan(id: Long): SparkPlanGraph = sql.planGraph(id)

  /** The metrics of a query's operators as the UI shows them, by the ids of their accumulators. */
  def metrics(id: Long): Map[Long, String] = sql.executionMetrics(id)

  /** The attempts of a stage; none if it is not known. */
  def attempts(stage: Int): Seq[StageData] = app.stageData(stage)

  def tasks(attempt: StageData): Seq[TaskData] =
    app.taskList(attempt.stageId, attempt.attemptId, Int.MaxValue)

  /** The names of the operators that a stage's tasks ran: of nodes of the plan, or of compiled ones. */
  def operators(stage: Int): Set[String] = {
    def names(cluster: RDDOperationCluster): Seq[String] =
      cluster.name +: cluster.childClusters.flatMap(names)
    found(app.operationGraphForStage(stage).rootCluster.childClusters.flatMap(names).toSet)
      .getOrElse(Set.empty)
  }

  /** The settings that the application was started with. */
  def properties: Map[String, String] =
    found(app.environmentInfo().sparkProperties.toMap).getOrElse(Map.empty)

  /** None of what was never there, or has had to make room for later ones. */
  private def found[T](read: => T): Option[T] =
    try {
      Some(read)
    } catch {
      case _: NoSuchElementException => None
    }
}

/**
 * A query by itself.
 *
 * @param operators the names of all nodes of its plan
 */
case class QuerySummary(
    id: Long,
    description: String,
    submitted: Long,
    completed: Option[Long],
    operators: Seq[String])

object QueryStatus {

  /** The queries of the running application. */
  def of(session: SparkSession): QueryStatus = {
    val context = session.sparkContext
    val app = context.statusStore
    // The end of a query is told by a thread of its own, and its metrics added up by another.
    try {
      context.listenerBus.waitUntilEmpty()
    } catch {
      case _: TimeoutException => // Other queries keep it busy. What is known by now will do.
    }
    app.store match {
      case tracking: ElementTrackingStore =>
        val written = new CountDownLatch(1)
        tracking.doAsync(written.countDown())
        written.await(10, TimeUnit.SECONDS)
      case _ =>
    }
    new QueryStatus(app, session.sharedState.statusStore)
  }
}
