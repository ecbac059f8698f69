package io.github.skewext.explain.report

import org.apache.spark.SparkFunSuite

/** The sentences of advice, from figures of tasks. */
class TaskAdviceSuite extends SparkFunSuite {

  private val MB = 1L << 20

  private def task(seconds: Double, read: Long = 0, spilled: Long = 0): ExecutedTask =
    ExecutedTask(
      partition = 13,
      host = "worker-3",
      run = (1000 * seconds).toLong,
      gc = 0,
      shuffleBytes = read,
      shuffleRows = read / 100,
      inputBytes = 0,
      inputRows = 0,
      memorySpilled = 3 * spilled,
      diskSpilled = spilled)

  private val (hot, usual) = (task(40, 900 * MB), task(2, 30 * MB))

  private val join =
    ExecutedJoin("SortMergeJoin", "", Some(Seq("k")), None, None, None, None, Nil)
  private val broadcast = join.copy(name = "BroadcastHashJoin")
  private val split = join.copy(split = Some("1 in 3"))

  private val loaded =
    QuerySettings(skewextLoaded = true, "", Nil, 200, 256 * MB, 5.0, 64 * MB)
  private val stock = loaded.copy(skewextLoaded = false)

  private def stage(slowest: ExecutedTask, median: ExecutedTask): StageTasks =
    StageTasks(7, prepares = false, 200, failed = 0, slowest +: Seq.fill(199)(median))

  private def of(
      slowest: ExecutedTask = hot,
      median: ExecutedTask = usual,
      join: ExecutedJoin = join,
      settings: QuerySettings = loaded): String =
    sentences(settings, stage(slowest, median) -> Seq(join)).mkString("\n")

  private def sentences(
      settings: QuerySettings,
      stages: (StageTasks, Seq[ExecutedJoin])*): Seq[String] =
    new TaskAdvice(stages, 1, settings).sentences

  /** Each case has a text of the advice, one that is not in it, and the advice. */
  private def check(cases: (String, String, String)*): Unit = cases.foreach {
    case (said, notSaid, advice) =>
      assert(advice.contains(said))
      assert(!advice.contains(notSaid))
  }

  private val adaptive = "spark.sql.adaptive"

  test("a partition that is larger than others") {
    check(
      (
        "Stage 7 (SortMergeJoin on k) is uneven: 38 s to win. The task of partition 13 on worker-3 " +
          "took 40 s, 20 times the median. It read 900.0 MiB, 30 times the median. skewext.skew_report(",
        "garbage",
        of()),
      ("skewext.skew_report(df, 'k') lists", "configure", of()),
      ("skewext.explain(df)", "configure", of()),
      ("skewext.skew_join(left, right, 'k', how, technique=", "spark.sql", of()),
      ("skew_report(df, ['k', 'j'])", "'k')", of(join = join.copy(keys = Some(Seq("k", "j"))))),
      ("skew_report(df, on)", "'k'", of(join = join.copy(keys = None))),
      ("skewext.configure(builder)", "explain", of(settings = stock)),
      (
        "divides such partitions among several tasks: spark.skewext.x=true.",
        "configure",
        of(settings = loaded.copy(switchedOff = Seq("spark.skewext.x")))),
      ("It was not split: one map", "spark.sql", of(join = join.copy(notSplit = Some("one map")))),
      (
        "It was not split: one map. Use more. Else join with skewext.skew_join(",
        "explain",
        of(join = join.copy(notSplit = Some("one map"), advice = Some("Use more.")))),
      (
        "It read 900.0 MiB, 30 times the median. Its join has no partitions",
        "spark.sql",
        of(join = broadcast)),
      (
        "read files or cached data",
        "skew_report",
        of(task(40).copy(inputBytes = 900 * MB), task(2))),
      ("where most others have nothing to do", "failed", of(median = task(0))))
  }

  test("a partition below the thresholds of adaptive execution") {
    check(
      ("ThresholdInBytes=25MB", "explain(", of(task(40, 100 * MB))),
      (
        s"from 5.0 times the median on: $adaptive.skewJoin.skewedPartitionFactor=2.",
        "Threshold",
        of(task(40, 800 * MB), task(2, 100 * MB))),
      // The log of a session without the extension.
      (
        "session with skewext.configure(builder). Adaptive execution splits from 256.0 MiB on, " +
          s"into pieces of 64.0 MiB: $adaptive.skewJoin.skewedPartitionThresholdInBytes=12MB, " +
          s"$adaptive.advisoryPartitionSizeInBytes=12MB.",
        "Factor",
        of(task(40, 48 * MB), task(2, MB), settings = stock)))
    assert(TaskAdvice.limits(stage(hot, usual), loaded).isEmpty)
    assert(TaskAdvice.limits(stage(task(40), task(2)), loaded).isDefined)
  }

  test("partitions that were split") {
    check(
      (
        "were split (1 in 3). Smaller pieces take less time each: " +
          s"$adaptive.advisoryPartitionSizeInBytes=30MB.",
        "configure",
        of(join = split)),
      (
        "were split (1 in 3). Its pieces are as large as other partitions",
        "spark.sql",
        of(join = split, settings = loaded.copy(advisoryBytes = 30 * MB))),
      // Smaller pieces change nothing if another limit decides.
      (
        "were split (1 in 3). The longest task is not shorter: it would read much. Allow it.",
        "spark.sql",
        of(join = split.copy(limit = Some("it would read much"), advice = Some("Allow it.")))))
  }

  test("causes other than bytes") {
    val asLarge = task(40, 31 * MB)
    check(
      (
        "10 s of that went into collecting garbage",
        "need no change",
        of(task(40).copy(gc = 10000))),
      (
        "It read 90,000 rows, 30 times the median, in about as many bytes",
        "both sides",
        of(task(40, 50 * MB).copy(shuffleRows = 90000), usual.copy(shuffleRows = 3000))),
      ("read no more than others. If its host is not slower", "configure", of(asLarge)),
      (
        "joins with spark.skewext.skew.outputSkew.mode=all: start the session with skewext",
        "explain",
        of(asLarge, settings = stock)),
      ("returns for them. Its join has no partitions", "divides", of(asLarge, join = broadcast)))
  }

  test("spills and failed tasks") {
    def spilling(seconds: Double, spilled: Long = MB) = task(seconds, spilled = spilled)
    val even = (spilling(2), spilling(2, MB / 2))
    val failing = stage(task(2), task(2)).copy(failed = 3)
    check(
      (
        "Stage 7 spilled 301.5 MiB, 100.5 MiB on disk. With more partitions less is spilled: " +
          "spark.sql.shuffle.partitions=512; or give executors more memory.",
        "advisory",
        of(even._1, even._2)),
      (
        "advisoryPartitionSizeInBytes=32MB",
        "shuffle.partitions",
        of(even._1, even._2, settings = loaded.copy(shufflePartitions = 1000))),
      (
        "90% of it the slowest task",
        "shuffle.partitions",
        of(spilling(40, 1791 * MB), spilling(2))),
      (
        "3 tasks of stage 7 failed",
        "need no change",
        sentences(loaded, failing -> Seq(join)).mkString),
      (
        "1 task of stage 7 failed",
        "need no change",
        sentences(loaded, failing.copy(failed = 1) -> Seq(join)).mkString))
  }

  test("nothing to change") {
    val slightly = of(task(0.111), task(0.019))
    assert(
      of(task(3), task(2)) ===
        "The tasks of joins are even: they need no change (the slowest took 3 s, 1.5 times the median).")
    assert(
      slightly.startsWith("The tasks of joins are uneven, but only 92 ms to win: they need no"))
    assert(new TaskAdvice(Nil, 1, loaded).sentences === Seq("No stage that has run has a join."))
    assert(new TaskAdvice(Nil, 0, loaded).sentences.head.startsWith("The query has no join"))
  }

  test("the stage with the largest gain comes first, and even ones are left out") {
    val slow = stage(hot, usual)
    val slower = stage(task(80), usual).copy(stage = 8, prepares = true)
    val even = stage(task(50), task(50)).copy(stage = 9)
    val said = sentences(loaded, slow -> Seq(join), even -> Seq(join), slower -> Seq.fill(4)(join))
    assert("Stage \\d".r.findAllIn(said.mkString).toSeq === Seq("Stage 8", "Stage 7"))
    assert(said.head.contains("(before SortMergeJoin on k, SortMergeJoin on k and 2 more)"))
  }
}
