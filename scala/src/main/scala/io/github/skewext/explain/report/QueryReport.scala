package io.github.skewext.explain.report

import io.github.skewext.explain.{ExplainedSkew, ExplanationJson, ExplanationText, Json, PlannedJoin}
import io.github.skewext.profile.KeyPass

import org.apache.spark.sql.execution.ui.SQLExecutionUIData
import org.apache.spark.sql.execution.{CommandResultExec, SparkPlan}
import org.apache.spark.sql.skewext.{EventLog, QueryStatus, QuerySummary, SqlInternals}
import org.apache.spark.sql.{DataFrame, SparkSession}

/**
 * A report on the tasks of a query in stages with joins, and on what skewext did with these, as JSON.
 */
object QueryReport {

  /**
   * @param query the number of the query in Spark's UI; without it, the last completed query with a
   *              join.
   */
  def of(session: SparkSession, query: Option[Long]): String = {
    val status = QueryStatus.of(session)
    val queries = status.queries(JoinStages.isJoin)
    val from = "this application"
    val id = query.getOrElse(candidates(queries, from).maxBy(_.id).id)
    new QueryReport(status, checked(queries, id, from), queries).json
  }

  /** The report on the query that ran the plan of `df` itself. */
  def of(df: DataFrame): String = {
    val status = QueryStatus.of(df.sparkSession)
    val own = metricsOf(df.queryExecution.executedPlan)
    val queries = status.queries(JoinStages.isJoin)
    val ran = queries.filter { query =>
      status.query(query.id).exists(_.metrics.exists(m => own.contains(m.accumulatorId)))
    }
    if (ran.isEmpty) {
      fail(
        s"${ExplainedSkew.NotRunItself.capitalize}. Run the DataFrame by collect() or toPandas(), " +
          "or give the number that the query has in Spark's UI; without one, the report is about the " +
          "last query that has a join.")
    }
    val id = ran.map(_.id).max
    new QueryReport(status, checked(queries, id, "this application"), queries).json
  }

  /**
   * @param query the number of the query in the UI; without it, the longest completed query with a
   *              join.
   */
  def of(log: EventLog, query: Option[Long]): String = {
    val queries = log.queries
    val id = query.getOrElse(candidates(queries, "the event log").maxBy(durationOf(_)).id)
    checked(queries, id, "the event log")
    new QueryReport(log.status(id), id, queries).json
  }

  private def candidates(queries: Seq[QuerySummary], from: String): Seq[QuerySummary] = {
    val found = queries.filter { query =>
      query.completed.isDefined && query.joins > 0 && query.description != KeyPass.Name
    }
    if (found.isEmpty) {
      fail(
        if (queries.isEmpty) s"There is no query of SQL or DataFrames in $from."
        else s"None of the ${queries.size} queries in $from has a join and is done.")
    }
    found
  }

  private def checked(queries: Seq[QuerySummary], id: Long, from: String): Long =
    queries.find(_.id == id) match {
      case Some(query) if query.completed.isEmpty =>
        fail(s"Query $id in $from has not come to its end: ${query.description}")
      case Some(_) => id
      case None =>
        val known = if (queries.isEmpty) "none" else s"${queries.head.id} to ${queries.last.id}"
        fail(s"There is no query $id in $from; known are $known.")
    }

  private def durationOf(query: QuerySummary): Long =
    query.completed.fold(0L)(_ - query.submitted)

  /** The accumulators of the operators of a plan, without those of cached data that it reads. */
  private def metricsOf(plan: SparkPlan): Set[Long] = plan match {
    case result: CommandResultExec => metricsOf(result.commandPhysicalPlan)
    case _ => plan.metrics.values.map(_.id).toSet ++ PlannedJoin.below(plan).flatMap(metricsOf)
  }

  private def fail(message: String): Nothing = throw SqlInternals.analysisError(message)
}

private class QueryReport(status: QueryStatus, id: Long, queries: Seq[QuerySummary]) {
  import QueryReport._

  private val query: SQLExecutionUIData = status.query(id).getOrElse {
    fail(s"Query $id is not remembered any more.")
  }
  private val explained = ExplanationJson.stored(status, id).toSeq.flatMap(_.joins)
  private val ran = new ExecutedQuery(status, query, explained)

  def json: String = {
    if (!ran.isKnown) {
      fail(
        s"No tasks are known of query $id (${query.description}): it ran none, or they are not " +
          "remembered any more (spark.ui.retainedStages, spark.ui.retainedTasks).")
    }
    val failure = query.errorMessage.filter(_.nonEmpty)
    val summary = queries.find(_.id == id).get
    val application = status.application
    Json.text(
      Json.fields(
        "application" -> application.map(_.name),
        "application_id" -> application.map(_.id),
        "spark_version" -> application.flatMap(_.attempts.lastOption).map(_.appSparkVersion),
        "query" -> id,
        "description" -> query.description,
        "milliseconds" -> durationOf(summary),
        "failure" -> failure,
        "joins" -> ran.numJoins,
        "stages" -> ran.stages.map { case (stage, joins) => of(stage, joins) },
        "other_run_ms" -> ran.otherMillis,
        "join_work" -> ran.joinWork.map(of(_)),
        "stage_work" -> ran.stageWork.map(of(_)),
        "explained" -> ExplanationText.summary(explained),
        "advice" -> ran.advice.sentences,
        "settings" -> Json.tree(ran.settings).snakizeKeys,
        "queries" -> queries.filter(_.completed.isDefined).map(of(_))))
  }

  private def of(stage: StageTasks, joins: Seq[ExecutedJoin]): Map[String, Any] = {
    def figures(value: (ExecutedTask => Long) => Any): Seq[(String, Any)] =
      ExecutedTask.Figures.map { case (name, figure) => name -> value(figure) }
    val slowest = stage.ran.head
    val which = Seq("partition" -> slowest.partition, "host" -> slowest.host)
    Json.fields(
      "stage" -> stage.stage,
      "prepares" -> stage.prepares,
      "joins" -> joins.map(of(_)),
      "tasks" -> stage.planned,
      "failed_tasks" -> stage.failed,
      "slowest" -> Json.fields(which ++ figures(_(slowest)): _*),
      "median" -> Json.fields(figures(stage.median): _*),
      "total" -> Json.fields(figures(stage.total): _*),
      "uneven_tasks" -> stage.uneven,
      "is_slow" -> stage.isSlow,
      "verdict" -> stage.verdict,
      "is_below_thresholds" -> TaskAdvice.limits(stage, ran.settings).isDefined,
      "run_ms" -> stage.ran.map(_.run))
  }

  private def of(join: ExecutedJoin): Map[String, Any] = Json.fields(
    "operator" -> join.name,
    "text" -> join.text,
    "keys" -> join.keys,
    "joins_partitions" -> join.joinsPartitions,
    "split" -> join.split,
    "not_split" -> join.notSplit,
    "limit" -> join.limit,
    "advice" -> join.advice,
    "metrics" -> Json.fields(join.metrics.map { case (name, value) =>
      name -> value.fold[Any](identity, identity)
    }: _*))

  private def of(work: JoinWork): Map[String, Any] = Json.fields(
    "stage" -> work.stage,
    "operator" -> work.join.name,
    "keys" -> work.join.keys,
    "condition" -> work.condition,
    "inputs" -> work.inputs.map { input =>
      Json.fields(
        "rows" -> input.rows,
        "shuffled" -> input.shuffled,
        "stage" -> input.stage,
        "chained" -> input.chained)
    })

  private def of(work: StageWork): Map[String, Any] = Json.fields(
    "stage" -> work.stage,
    "run_ms" -> work.total(_.executorRunTime),
    "scanned_rows" -> work.total(_.inputRecords),
    "read_rows" -> work.total(_.shuffleReadRecords),
    "written_rows" -> work.total(_.shuffleWriteRecords),
    "written_bytes" -> work.total(_.shuffleWriteBytes),
    "output_rows" -> work.total(_.outputRecords),
    "disk_spilled" -> work.total(_.diskBytesSpilled),
    "aggregated_rows" -> work.aggregated,
    "joined_rows" -> work.joined,
    "is_known" -> work.isKnown)

  private def of(query: QuerySummary): Map[String, Any] = Json.fields(
    "query" -> query.id,
    "description" -> query.description,
    "milliseconds" -> durationOf(query),
    "joins" -> query.joins)
}
