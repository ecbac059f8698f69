package io.github.skewext.explain.report

import io.github.skewext.skew.plan.RowWeights
import io.github.skewext.skew.run.MarkKeys

import org.apache.spark.sql.skewext.{QueryStatus, UiFormats}
import org.apache.spark.status.api.v1.TaskData

/** The metrics of a successful task; times are in milliseconds. */
private[skewext] case class ExecutedTask(
    partition: Int,
    host: String,
    run: Long,
    gc: Long,
    shuffleBytes: Long,
    shuffleRows: Long,
    inputBytes: Long,
    inputRows: Long,
    memorySpilled: Long,
    diskSpilled: Long) {

  /** All bytes that it read. */
  def readBytes: Long = shuffleBytes + inputBytes

  /** All rows that it read. */
  def readRows: Long = shuffleRows + inputRows
}

private[skewext] object ExecutedTask {

  /** The metrics of a task by their names. */
  val Figures: Seq[(String, ExecutedTask => Long)] = Seq(
    "run_ms" -> (_.run),
    "gc_ms" -> (_.gc),
    "shuffle_bytes" -> (_.shuffleBytes),
    "shuffle_rows" -> (_.shuffleRows),
    "input_bytes" -> (_.inputBytes),
    "input_rows" -> (_.inputRows),
    "memory_spilled" -> (_.memorySpilled),
    "disk_spilled" -> (_.diskSpilled))

  def of(task: TaskData): Option[ExecutedTask] =
    task.taskMetrics.filter(_ => task.status == "SUCCESS").map { metrics =>
      val read = metrics.shuffleReadMetrics
      ExecutedTask(
        // Logs of Spark before 3.3 have only the position among the tasks of the attempt.
        if (task.partitionId >= 0) task.partitionId else task.index,
        task.host,
        metrics.executorRunTime,
        metrics.jvmGcTime,
        read.remoteBytesRead + read.localBytesRead,
        read.recordsRead,
        metrics.inputMetrics.bytesRead,
        metrics.inputMetrics.recordsRead,
        metrics.memoryBytesSpilled,
        metrics.diskBytesSpilled)
    }
}

/**
 * The tasks of a stage.
 *
 * @param planned the number of its tasks, which may exceed the number of stored tasks.
 * @param prepares whether it ran before a split join, to compute data for the join's tasks.
 * @param failed the number of failed tasks, which ran again.
 * @param ran the successful tasks, one for each partition, the slowest first.
 */
private[skewext] case class StageTasks(
    stage: Int,
    prepares: Boolean,
    planned: Int,
    failed: Int,
    ran: Seq[ExecutedTask]) {

  def total(figure: ExecutedTask => Long): Long = ran.map(figure).sum

  def median(figure: ExecutedTask => Long): Double =
    RowWeights.median(ran.map(figure(_).toDouble))

  /** The number of tasks that took much longer than the median, usually because of a hot key. */
  lazy val uneven: Int = {
    val least = StageTasks.Uneven * median(_.run)
    ran.takeWhile(_.run > least).size
  }

  /** Whether even tasks would save so much time that a change is worth it. */
  def isSlow: Boolean = uneven > 0 && excess > StageTasks.WorthMillis

  /** The judgement of uneven tasks, for the tab and for reports. */
  def verdict: Option[String] =
    if (uneven == 0) None
    else if (isSlow) Some(s"uneven: ${UiFormats.duration(excess)} to win")
    else Some(s"uneven, but only ${UiFormats.duration(excess)} to win")

  /** The milliseconds that even tasks would save. */
  private[report] def excess: Long = ran.head.run - median(_.run).toLong
}

private[skewext] object StageTasks {

  /** A task is uneven above this multiple of the median. */
  private val Uneven = 2.0

  private val WorthMillis = 1000

  /**
   * None for a stage that did not run, because its output existed already, or that is no longer
   * stored.
   */
  def of(status: QueryStatus, stage: Int): Option[StageTasks] = {
    val attempts = status.attempts(stage)
    // A later attempt runs the tasks whose output was lost again.
    val ran = attempts
      .sortBy(_.attemptId)
      .flatMap(status.tasks(_).flatMap(ExecutedTask.of(_)))
      .map(task => task.partition -> task)
      .toMap
      .values
      .toSeq
    if (ran.isEmpty) {
      None
    } else {
      Some(
        StageTasks(
          stage,
          attempts.exists(_.name == MarkKeys.Name),
          attempts.map(_.numTasks).max,
          attempts.map(_.numFailedTasks).sum,
          ran.sortBy(task => (-task.run, task.partition))))
    }
  }
}
