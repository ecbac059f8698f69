package io.github.skewext.explain.ui

import scala.xml.{Node, NodeSeq}

import io.github.skewext.explain.report.{ExecutedJoin, ExecutedTask, StageTasks}

import org.apache.spark.sql.skewext.UiFormats.number

/**
 * The first lines of a query's page: whether the tasks of its joins are even, and what to do if they
 * are not. The reasons and the advice are those of `explain`.
 */
private[ui] object QueryVerdict {

  /** The input of a slow task is the cause if it is more than this multiple of the median input. */
  private val ReadMore = 2.0

  def apply(id: Long, stages: Seq[(StageTasks, Seq[ExecutedJoin])]): NodeSeq = {
    val slow = stages.filter(_._1.isSlow).sortBy(-_._1.ran.head.run)
    if (stages.isEmpty) {
      NodeSeq.Empty
    } else if (slow.isEmpty) {
      <div class="alert alert-success">{calm(stages.map(_._1))}</div>
    } else {
      <div class="alert alert-warning">
        {slow.map { case (tasks, joins) => verdict(tasks, joins) }}
        {command(id)}
      </div>
    }
  }

  /** A user of spark-submit has no session in which to call a function. */
  private def command(id: Long): Node =
    <div>
      <code>python -m pyspark_skewext report EVENTLOG --query {id}</code> prints a report with
      advice from the event log of this application. In its session,
      <code>skewext.query_report({id})</code> returns the same.
    </div>

  private def calm(stages: Seq[StageTasks]): String = {
    val uneven = stages.filter(_.uneven > 0).sortBy(-_.ran.head.run).headOption
    val judged = uneven.flatMap(_.verdict).getOrElse("even")
    s"There is nothing to do: the tasks of joins are $judged."
  }

  private def verdict(tasks: StageTasks, joins: Seq[ExecutedJoin]): Node =
    <div class="mb-2">
      <div><b>Stage {tasks.stage}, {QueryView.named(tasks, joins)}: {
      tasks.verdict.mkString
    }</b></div>
      <div>The slowest task: {TaskBars.told(tasks.ran.head)}. {cause(tasks)}</div>
      {joins.flatMap(advice(_)).distinct.map(text => <div>{text}</div>)}
    </div>

  /** Compares the input of the slowest task with that of the median task. */
  def cause(tasks: StageTasks): String = {
    def times(figure: ExecutedTask => Long): Double =
      figure(tasks.ran.head) / math.max(1.0, tasks.median(figure))
    val (bytes, rows) =
      (
        times(task => task.shuffleBytes + task.inputBytes),
        times(task => task.shuffleRows + task.inputRows))
    if (bytes > ReadMore) {
      s"It read ${number(bytes.round)} times the bytes of the median task."
    } else if (rows > ReadMore) {
      s"It read ${number(rows.round)} times the rows of the median task, in about as many bytes."
    } else {
      "It read no more than the median task: its keys may have many rows on both sides, or its " +
        "host is slow."
    }
  }

  private def advice(join: ExecutedJoin): Seq[String] =
    join.notSplit.map(why => s"${join.name} was not split: $why.").toSeq ++
      join.limit.map(why => s"The longest task of the split is not shorter: $why.") ++
      join.advice
}
