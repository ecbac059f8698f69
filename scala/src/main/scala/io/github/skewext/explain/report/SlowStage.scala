package io.github.skewext.explain.report

import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.skewext.UiFormats.{bytes, duration, number}

/** Advice on a stage whose slowest task took much longer than the median: the cause, and the cure. */
private[report] class SlowStage(
    tasks: StageTasks,
    joins: Seq[ExecutedJoin],
    settings: QuerySettings) {
  import SlowStage._
  import TaskAdvice.{Advisory, compared, named, size}

  private val slowest = tasks.ran.head

  /** The key as an argument of a call. */
  private val on: String = joins.flatMap(_.keys).headOption match {
    case Some(Seq(key)) => s"'$key'"
    case Some(keys) => keys.mkString("['", "', '", "']")
    case None => "on"
  }

  private val joinsPartitions = joins.exists(_.joinsPartitions)

  def advice: String = {
    val collected =
      if (slowest.gc <= Garbage * slowest.run) ""
      else {
        s" ${duration(slowest.gc)} of that went into collecting garbage: its executor has too " +
          "little memory, or too many tasks side by side."
      }
    s"Stage ${tasks.stage} (${named(tasks, joins)}) is ${tasks.verdict.mkString}. The " +
      s"task of partition ${slowest.partition} on ${slowest.host} took " +
      s"${duration(slowest.run)}, ${compared(tasks, _.run)}.$collected $cause"
  }

  private def cause: String =
    if (readMore(_.readBytes)) {
      s"It read ${bytes(slowest.readBytes)}, ${compared(tasks, _.readBytes)}. $larger"
    } else if (readMore(_.readRows)) {
      s"It read ${number(slowest.readRows)} rows, ${compared(tasks, _.readRows)}, in about as many " +
        s"bytes: equal keys that are compressed. $larger"
    } else {
      "It read no more than others. If its host is not slower, its keys have many rows on both " +
        s"sides, so it returns most rows: skewext.skew_report(df, $on, other) lists the keys, and " +
        "how many rows a join returns for them. " +
        (if (joinsPartitions) divided(OfOutput) else Repartition)
    }

  private def readMore(figure: ExecutedTask => Long): Boolean =
    figure(slowest) > ReadMore * tasks.median(figure)

  /** Advice on a partition that is larger than others. */
  private def larger: String = joins.find(_.split.isDefined) match {
    case _ if slowest.shuffleBytes == 0 =>
      "It read files or cached data, so its partition is as they are: write smaller files, or " +
        "repartition before the join."
    case Some(join) => smaller(join)
    case None if !joinsPartitions => Repartition
    case None => s"skewext.skew_report(df, $on) lists the keys with the most rows. $notSplit"
  }

  /** What makes the tasks of a split shorter. */
  private def smaller(join: ExecutedJoin): String = {
    val piece = math.max(settings.advisoryBytes / Pieces, tasks.median(_.shuffleBytes))
    join.limit match {
      case Some(limit) =>
        s"The longest task of the split is not shorter: $limit.${join.advice.fold("")(" " + _)}"
      case None if piece >= settings.advisoryBytes =>
        "Its pieces are as large as other partitions: there is nothing to do."
      case None => s"Smaller pieces take less time each: $Advisory=${size(piece)}."
    }
  }

  private def notSplit: String = {
    val whole = joins.flatMap(join => join.notSplit.map(_ -> join.advice)).headOption
    val limits = TaskAdvice.limits(tasks, settings)
    (whole, limits) match {
      case (Some((why, advice)), _) =>
        s"It was not split: $why.${advice.fold("")(" " + _)} Else $technique"
      case (None, _) if !settings.splits => divided("") + limits.fold("")(" " + _)
      case (None, Some(limit)) => limit
      case (None, None) =>
        "The tab skewext of Spark's UI, and skewext.explain(df) when df has been run, have the " +
          s"reason why it was not split. Or $technique"
    }
  }

  private def technique: String =
    s"""join with skewext.skew_join(left, right, $on, how, technique="auto")."""

  /** How the extension splits the partition, and what switches that on. */
  private def divided(which: String): String = {
    val loads =
      if (settings.skewextLoaded) Nil
      else Seq("start the session with skewext.configure(builder)")
    val steps = loads ++ settings.switchedOff.map(_ + "=true")
    val listed = if (steps.isEmpty) "" else steps.mkString(": ", ", ", "")
    s"The extension divides such partitions among several tasks$which$listed."
  }
}

private object SlowStage {

  /** The input of a slow task is the cause if it is more than this multiple of the median input. */
  private val ReadMore = 2.0

  /** A larger share of garbage collection means that memory is short. */
  private val Garbage = 0.2

  /** Pieces of a split become smaller by this factor, unless others are larger. */
  private val Pieces = 8.0

  private val OfOutput =
    s", those of Spark's own joins with ${SkewConf.SKEW_OUTPUT_MODE.key}=all"

  private val Repartition =
    "Its join has no partitions by key: repartition its larger side before the join."
}
