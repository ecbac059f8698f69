package org.apache.spark.sql.skewext

import java.util.NoSuchElementException
import java.util.concurrent.{CountDownLatch, TimeUnit, TimeoutException}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.ui.{SQLAppStatusStore, SQLExecutionUIData, SparkPlanGraph}
import org.apache.spark.status.KVUtils.viewToSeq
import org.apache.spark.status.api.v1.{ApplicationInfo, StageData, TaskData}
import org.apache.spark.status.{AppStatusStore, ElementTrackingStore}
import org.apache.spark.ui.scope.RDDOperationCluster

/**
 * The data of queries and their tasks in the stores of Spark's listeners. Spark's UI shows the same
 * data, but the stores exist without the UI, too. Lives here because the stores are
 * `private[spark]`.
 */
final class QueryStatus private[skewext] (app: AppStatusStore, sql: SQLAppStatusStore) {

  /**
   * The stored queries in the order of their start.
   *
   * @param isJoin whether an operator of this name is a join.
   */
  def queries(isJoin: String => Boolean): Seq[QuerySummary] =
    sql.executionsList().sortBy(_.executionId).map { query =>
      QuerySummary(
        query.executionId,
        query.description,
        query.submissionTime,
        query.completionTime.map(_.getTime),
        found(plan(query.executionId).allNodes.count(node => isJoin(node.name))).getOrElse(0))
    }

  def query(id: Long): Option[SQLExecutionUIData] = sql.execution(id)

  /** The explanations of all queries, as JSON, by the numbers of the queries. */
  def explanations: Seq[(Long, String)] =
    viewToSeq(app.store.view(classOf[ExplainedQuery]))
      .map(query => query.executionId -> query.explanation)

  /** The explanation of the joins of a query, as JSON. */
  def explanation(id: Long): Option[String] =
    found(app.store.read(classOf[ExplainedQuery], id).explanation)

  /** The plan of a query; with adaptive execution its final plan. */
  def plan(id: Long): SparkPlanGraph = sql.planGraph(id)

  /**
   * The metrics of a query's operators, formatted as in the UI, by the ids of their accumulators.
   */
  def metrics(id: Long): Map[Long, String] = sql.executionMetrics(id)

  /** The attempts of a stage; empty if the stage is unknown. */
  def attempts(stage: Int): Seq[StageData] = app.stageData(stage)

  def tasks(attempt: StageData): Seq[TaskData] =
    app.taskList(attempt.stageId, attempt.attemptId, Int.MaxValue)

  /**
   * The names of the operators that ran in a stage's tasks: nodes of the plan, or generated code.
   */
  def operators(stage: Int): Set[String] = {
    def names(cluster: RDDOperationCluster): Seq[String] =
      cluster.name +: cluster.childClusters.flatMap(names)
    found(app.operationGraphForStage(stage).rootCluster.childClusters.flatMap(names).toSet)
      .getOrElse(Set.empty)
  }

  /** The name and the id of the application, and its version of Spark. */
  def application: Option[ApplicationInfo] = found(app.applicationInfo())

  /** The settings with which the application was started. */
  def properties: Map[String, String] =
    found(app.environmentInfo().sparkProperties.toMap).getOrElse(Map.empty)

  /** None if the element never existed, or was evicted. */
  private def found[T](read: => T): Option[T] =
    try {
      Some(read)
    } catch {
      case _: NoSuchElementException => None
    }
}

/**
 * The summary of a query.
 *
 * @param joins the number of joins in its plan
 */
case class QuerySummary(
    id: Long,
    description: String,
    submitted: Long,
    completed: Option[Long],
    joins: Int)

object QueryStatus {

  /** The queries of the running application. */
  def of(session: SparkSession): QueryStatus = {
    val context = session.sparkContext
    val app = context.statusStore
    // One thread delivers the end of a query, and another one adds up its metrics.
    try {
      context.listenerBus.waitUntilEmpty()
    } catch {
      case _: TimeoutException => // Other queries keep it busy. The data so far is enough.
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
