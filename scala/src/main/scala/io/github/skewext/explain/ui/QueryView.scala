package io.github.skewext.explain.ui

import scala.xml.{Node, NodeSeq}

import io.github.skewext.explain.report.{ExecutedJoin, ExecutedQuery, StageTasks, TaskAdvice}
import io.github.skewext.explain.{Explanation, ExplanationText}

import org.apache.spark.sql.execution.ui.SQLExecutionUIData
import org.apache.spark.sql.skewext.{QueryStatus, UiFormats}

/**
 * A query: a verdict, its joins, the reasons for their plans, and their tasks. Long names break, and
 * bars scroll in a separate box, so that the page does not scroll sideways on a phone. This uses
 * classes of Bootstrap, which Spark's UI includes.
 */
object QueryView {

  /** @param link a function that returns the address of a page of Spark's UI. */
  def apply(
      id: Long,
      explanation: Explanation,
      status: QueryStatus,
      link: String => String): NodeSeq = {
    val query = status.query(id)
    val ran = query.map(new ExecutedQuery(status, _, explanation.joins))
    <div class="text-break">
      {query.fold[NodeSeq](forgotten)(summary(_, link))}
      {ran.filter(_.stages.nonEmpty).map(executed => verdict(id, executed.advice)).toSeq}
      {ExplanationText.entries(explanation).map(entry(_))}
      {ran.fold[NodeSeq](NodeSeq.Empty)(tasks(_, link))}
    </div>
  }

  private def forgotten: Node = <p>Spark remembers nothing else of this query any more.</p>

  private def summary(query: SQLExecutionUIData, link: String => String): Node = {
    val took = QueriesView.durationOf(query).fold("")(ms => s", ${UiFormats.duration(ms)}")
    val failed = if (query.errorMessage.exists(_.nonEmpty)) ", failed" else ""
    <p>
      <a href={link(s"/SQL/execution/?id=${query.executionId}")}>{query.description}</a>,
      submitted {UiFormats.time(query.submissionTime)}{took}{failed}
    </p>
  }

  /** Whether the tasks of its joins are even, and what to do if they are not. */
  private[ui] def verdict(id: Long, advice: TaskAdvice): Node = {
    val isCalm = advice.problems.isEmpty
    <div class={s"alert alert-${if (isCalm) "success" else "warning"}"}>
      {advice.sentences.map(sentence => <div class="mb-2">{sentence}</div>)}
      {if (isCalm) NodeSeq.Empty else command(id)}
    </div>
  }

  /** A user of spark-submit has no session. */
  private def command(id: Long): Node =
    <div><code>python -m pyspark_skewext report EVENTLOG --query {id}</code> says the same.</div>

  /** The title of a join or of a scan, and its lines. An indented line belongs to the one above. */
  private def entry(lines: Seq[String]): Node =
    if (lines.size == 1) {
      <p>{lines.head}</p>
    } else {
      <div>
        <h4>{lines.head}</h4>
        <pre>{lines.tail.mkString("\n")}</pre>
      </div>
    }

  private def tasks(ran: ExecutedQuery, link: String => String): NodeSeq = {
    val stages = ran.stages
    <div>
      <h4>Tasks of stages with a join</h4>
      {if (stages.isEmpty) <p>None that ended well are remembered.</p> else NodeSeq.Empty}
      {stages.map { case (tasks, joins) => stage(tasks, joins, link) }}
    </div>
  }

  private def stage(tasks: StageTasks, joins: Seq[ExecutedJoin], link: String => String): Node =
    <div>
      <p>
        <a href={link(s"/stages/stage/?id=${tasks.stage}&attempt=0")}>Stage {tasks.stage}</a>,
        {TaskAdvice.named(tasks, joins)}: {
      TaskBars.caption(tasks)
    }
        {tasks.verdict.fold("")(text => s" ($text; ${TaskBars.told(tasks.ran.head)})")}
      </p>
      <div class="table-responsive mb-2">{TaskBars.of(tasks)}</div>
    </div>
}
