package io.github.skewext.explain.report

import java.util.Locale

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.UiFormats.{bytes, counted, duration, number}

/**
 * Advice on the tasks of a query's joins, as sentences, for the tab and for reports. It names settings
 * as `key=value`, because a reader of the tab may have no session.
 *
 * @param numJoins the number of joins in the plan of the query.
 */
private[skewext] class TaskAdvice(
    stages: Seq[(StageTasks, Seq[ExecutedJoin])],
    numJoins: Int,
    settings: QuerySettings) {
  import TaskAdvice._

  /** What to change, first for the stage with the largest possible gain. Empty if nothing is. */
  val problems: Seq[String] = {
    val slow = stages.filter(_._1.isSlow).sortBy(-_._1.excess).map { case (tasks, joins) =>
      new SlowStage(tasks, joins, settings).advice
    }
    val all = stages.map(_._1)
    slow ++ all.filter(_.total(_.diskSpilled) > 0).map(spilled(_)) ++
      all.filter(_.failed > 0).map { tasks =>
        s"${counted(tasks.failed, "task")} of stage ${tasks.stage} failed: Spark's UI has the " +
          "reason at the stage."
      }
  }

  def sentences: Seq[String] = if (problems.isEmpty) Seq(calm) else problems

  private def calm: String =
    if (numJoins == 0) {
      "The query has no join: this report is about joins."
    } else if (stages.isEmpty) {
      "No stage that has run has a join."
    } else {
      val worst = stages.map(_._1).maxBy(_.excess)
      s"The tasks of joins are ${worst.verdict.getOrElse("even")}: no partition needs a split (the " +
        s"slowest took ${duration(worst.ran.head.run)}, ${compared(worst, _.run)})."
    }

  private def spilled(tasks: StageTasks): String = {
    val onDisk = tasks.total(_.diskSpilled)
    val share = tasks.ran.head.diskSpilled.toDouble / onDisk
    s"Stage ${tasks.stage} spilled ${bytes(tasks.total(_.memorySpilled))}, ${bytes(onDisk)} on disk" +
      (if (tasks.isSlow && share > 0.5) {
         s", ${(100 * share).round}% of it the slowest task: what makes that faster, ends this."
       } else {
         s". With ${partitions(tasks)}; or give executors more memory."
       })
  }

  /** The setting that makes partitions smaller. Adaptive execution may have coalesced them. */
  private def partitions(tasks: StageTasks): String =
    if (tasks.planned < settings.shufflePartitions) {
      s"smaller partitions less is spilled: $Advisory=${size(settings.advisoryBytes / 2.0)}"
    } else {
      val more = Integer.highestOneBit(4 * settings.shufflePartitions - 1)
      s"more partitions less is spilled: $Partitions=$more"
    }
}

private[skewext] object TaskAdvice {

  private val Threshold = SQLConf.SKEW_JOIN_SKEWED_PARTITION_THRESHOLD.key
  private val Factor = SQLConf.SKEW_JOIN_SKEWED_PARTITION_FACTOR.key
  private val Partitions = SQLConf.SHUFFLE_PARTITIONS.key
  private[report] val Advisory = SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES.key

  /**
   * The settings that keep adaptive execution from splitting the largest partition of a stage; None
   * if it is large enough.
   */
  def limits(tasks: StageTasks, settings: QuerySettings): Option[String] = {
    import settings._
    // Of two inputs, one has at least half of it.
    val half = tasks.ran.head.shuffleBytes / 2.0
    val lower = half / 2
    val median = tasks.median(_.shuffleBytes)
    def limit(applies: Boolean, said: String, key: String, value: String) =
      if (applies) Seq((said, s"$key=$value")) else Nil
    val factor = math.max(1, (lower / median).toInt).toString
    val kept =
      limit(half <= skewedBytes, s"from ${bytes(skewedBytes)} on", Threshold, size(lower)) ++
        limit(
          half <= skewedFactor * median,
          s"from ${times(skewedFactor)} the median on",
          Factor,
          factor)
    val pieces = s"into pieces of ${bytes(advisoryBytes)}"
    val (limits, steps) =
      (kept ++ limit(lower < advisoryBytes, pieces, Advisory, size(lower))).unzip
    if (kept.isEmpty) None
    else Some(s"Adaptive execution splits ${limits.mkString(", ")}: ${steps.mkString(", ")}.")
  }

  /** For example, `keys before SplitJoin on k, split 1 partition in 4 pieces`. */
  private[explain] def named(tasks: StageTasks, joins: Seq[ExecutedJoin]): String =
    (if (tasks.prepares) "keys before " else "") + joins.map(_.named).mkString(", ")

  /** How the slowest task compares with the median. */
  private[report] def compared(tasks: StageTasks, figure: ExecutedTask => Long): String = {
    val median = tasks.median(figure)
    if (median == 0) "where most others have nothing to do"
    else s"${times(figure(tasks.ran.head) / median)} the median"
  }

  private def times(ratio: Double): String =
    if (ratio >= 10) s"${number(ratio.round)} times"
    else "%.1f times".formatLocal(Locale.US, ratio)

  /** A size as the value of a setting. */
  private[report] def size(size: Double): String = {
    val megabytes = (size / (1 << 20)).toLong
    if (megabytes > 0) s"${megabytes}MB" else s"${math.max(1, (size / 1024).toLong)}KB"
  }
}
