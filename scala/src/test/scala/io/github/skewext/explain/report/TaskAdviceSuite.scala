package io.github.skewext.explain.report

import org.apache.spark.SparkFunSuite

/** The sentences of advice, from figures of tasks. */
class TaskAdviceSuite extends SparkFunSuite {

  private val MB = 1L << 20
  private val (threshold, factor, advisory) =
    ("skewedPartitionThresholdInBytes=", "skewedPartitionFactor=", "advisoryPartitionSizeInBytes=")

  private def task(seconds: Double, read: Long = 0, spilled: Long = 0): ExecutedTask = {
    val run = (1000 * seconds).toLong
    ExecutedTask(13, "worker-3", run, 0, read, read / 100, 0, 0, 3 * spilled, spilled)
  }

  private val (hot, usual) = (task(40, 900 * MB), task(2, 30 * MB))
  private val asLarge = hot.copy(shuffleBytes = 31 * MB, shuffleRows = usual.shuffleRows)

  private val join =
    ExecutedJoin("SortMergeJoin", "", Some(Seq("k")), None, None, None, None, Nil)
  private val broadcast = join.copy(name = "BroadcastHashJoin")
  private val split = join.copy(split = Some("1 in 3"))
  private val limited = split.copy(limit = Some("it would read much"), advice = Some("Allow it."))
  private val whole = join.copy(notSplit = Some("one map"), advice = Some("Use more."))

  private val loaded = QuerySettings(skewextLoaded = true, "", Nil, 200, 256 * MB, 5.0, 64 * MB)
  private val stock = loaded.copy(skewextLoaded = false)
  private val off = loaded.copy(switchedOff = Seq("spark.skewext.x"))

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

  /** Each case has the advice, a text that is in it, and one that is not. */
  private def check(cases: (String, String, String)*): Unit = cases.foreach {
    case (advice, said, notSaid) =>
      assert(advice.contains(said))
      assert(!advice.contains(notSaid))
  }

  test("a partition that is larger than others") {
    assert(of().startsWith(
      "Stage 7 (SortMergeJoin on k) is uneven: 38 s to win. The task of partition 13 on worker-3 " +
        "took 40 s, 20 times the median. It read 900.0 MiB, 30 times the median. skewext.skew_re"))
    check(
      (of(), "skew_report(df, 'k') lists", "garbage"),
      (of(), "skewext.explain(df)", "configure"),
      (of(), "skewext.skew_join(left, right, 'k', how, technique=", "spark.sql"),
      (of(join = join.copy(keys = Some(Seq("k", "j")))), "skew_report(df, ['k', 'j'])", "'k')"),
      (of(join = join.copy(keys = None)), "skew_report(df, on)", "'k'"),
      (of(settings = stock), "skewext.configure(builder)", "explain"),
      (of(settings = off), "among several tasks: spark.skewext.x=true.", "configure"),
      (of(join = whole.copy(advice = None)), "It was not split: one map. Else", "spark.sql"),
      (of(join = whole), "not split: one map. Use more. Else join with skewext.skew_j", "explain"),
      (of(join = broadcast), "30 times the median. Its join has no partitions", "spark.sql"),
      (of(task(40).copy(inputBytes = MB), task(2)), "files or cached data", "skew_report"),
      (of(median = task(0)), "where most others have nothing to do", "failed"))
  }

  test("a partition below the thresholds of adaptive execution") {
    val factored = of(task(40, 800 * MB), task(2, 100 * MB))
    val inStock = of(task(40, 48 * MB), task(2, MB), settings = stock)
    check(
      (of(task(40, 100 * MB)), s"${threshold}25MB", "explain("),
      (factored, s"5.0 times the median on: spark.sql.adaptive.skewJoin.${factor}2.", threshold),
      (inStock, "configure(builder). Adaptive execution splits from 256.0 MiB on, into", factor),
      (inStock, s"into pieces of 64.0 MiB: spark.sql.adaptive.skewJoin.${threshold}12MB", factor),
      (inStock, s", spark.sql.adaptive.${advisory}12MB.", factor))
    assert(TaskAdvice.limits(stage(hot, usual), loaded).isEmpty)
    assert(TaskAdvice.limits(stage(task(40), task(2)), loaded).isDefined)
  }

  test("partitions that were split") {
    val small = of(join = split, settings = loaded.copy(advisoryBytes = 30 * MB))
    check(
      (of(join = split), "(SortMergeJoin on k, split 1 in 3)", "configure"),
      (of(join = split), s"take less time each: spark.sql.adaptive.${advisory}30MB.", threshold),
      (small, "Its pieces are as large as other partitions", "spark.sql"),
      // Smaller pieces change nothing if another limit decides.
      (of(join = limited), "is not shorter: it would read much. Allow it.", "spark.sql"))
  }

  test("causes other than bytes") {
    val rows = of(asLarge.copy(shuffleRows = 90000), usual.copy(shuffleRows = 3000))
    check(
      (of(task(40).copy(gc = 10000)), "10 s of that went into collecting garbage", "need no"),
      (rows, "read 90,000 rows, 30 times the median, in about as many bytes", "both sides"),
      (of(asLarge), "read no more than others. If its host is not slower", "configure"),
      (of(asLarge, settings = stock), "outputSkew.mode=all: start the session with", "explain"),
      (of(asLarge, join = broadcast), "for them. Its join has no partitions", "divides"))
  }

  test("spills and failed tasks") {
    val even = (task(2, spilled = MB), task(2, spilled = MB / 2))
    val many = of(even._1, even._2, settings = loaded.copy(shufflePartitions = 1000))
    def failing(n: Int) =
      sentences(loaded, stage(task(2), task(2)).copy(failed = n) -> Seq(join)).mkString
    check(
      (of(even._1, even._2), "Stage 7 spilled 301.5 MiB, 100.5 MiB on disk. With more", "advisory"),
      (of(even._1, even._2), ": spark.sql.shuffle.partitions=512; or give", "advisory"),
      (many, s"spark.sql.adaptive.${advisory}32MB", "shuffle.partitions"),
      (of(task(40, spilled = 900 * MB), even._2), "90% of it the slowest task", "partitions="),
      (failing(3), "3 tasks of stage 7 failed", "needs a split"),
      (failing(1), "1 task of stage 7 failed", "needs a split"))
  }

  test("nothing to change") {
    val end = "no partition needs a split (the slowest took"
    assert(
      of(task(3), task(2)) === s"The tasks of joins are even: $end 3 s, 1.5 times the median).")
    check((of(task(0.111), task(0.019)), s"are uneven, but only 92 ms to win: $end 0.1 s", "Stage"))
    assert(new TaskAdvice(Nil, 1, loaded).sentences === Seq("No stage that has run has a join."))
    assert(new TaskAdvice(Nil, 0, loaded).sentences.head.startsWith("The query has no join"))
  }

  test("the stage with the largest gain comes first, and even ones are left out") {
    val slower = stage(task(80), usual).copy(stage = 8, prepares = true)
    val even = stage(task(50), task(50)).copy(stage = 9)
    val all = Seq(stage(hot, usual), even, slower).map(_ -> Seq(join, join))
    val said = sentences(loaded, all: _*)
    assert("Stage \\d".r.findAllIn(said.mkString).toSeq === Seq("Stage 8", "Stage 7"))
    assert(said.head.contains("(keys before SortMergeJoin on k, SortMergeJoin on k)"))
  }
}
