package io.github.skewext.explain.ui

import io.github.skewext.explain.report.{ExecutedJoin, ExecutedTask, StageTasks}

import org.apache.spark.SparkFunSuite

/** The first lines of a query's page. */
class QueryVerdictSuite extends SparkFunSuite {

  private def task(partition: Int, run: Long, bytes: Long = 1000, rows: Long = 10) =
    ExecutedTask(partition, "host", run, 0, bytes, rows, 0, 0, 0, 0)

  private def stage(tasks: ExecutedTask*): StageTasks =
    StageTasks(7, prepares = false, tasks.size, failed = 0, tasks)

  private def slow(bytes: Long = 1000, rows: Long = 10): StageTasks =
    stage(task(3, 40000, bytes, rows), task(0, 2000), task(1, 2000))

  private val join =
    ExecutedJoin("MultiFullJoin", "", Some(Seq("k")), None, None, None, None, Nil)

  private def shown(stages: (StageTasks, Seq[ExecutedJoin])*): String =
    QueryVerdict(12, stages).text.replaceAll("\\s+", " ").trim

  test("even tasks, and uneven ones with little to win, need nothing") {
    assert(
      shown(stage(task(0, 9), task(1, 8)) -> Seq(join)) ===
        "There is nothing to do: the tasks of joins are even.")
    val uneven = stage(task(0, 111), task(1, 19), task(2, 19)) -> Seq(join)
    assert(shown(uneven).endsWith("joins are uneven, but only 92 ms to win."))
    assert(QueryVerdict(12, Seq(uneven)).head \@ "class" === "alert alert-success")
  }

  test("a query without a stage of a join has no verdict") {
    assert(QueryVerdict(12, Nil).isEmpty)
  }

  test("a slow stage has its reason, its advice, and a command without a session") {
    val whole = join.copy(notSplit = Some("a limit"), advice = Some("Raise it."))
    val text = shown(slow(bytes = 20000) -> Seq(whole))
    assert(text.startsWith("Stage 7, MultiFullJoin by k: uneven: 38 s to win The slowest task: "))
    assert(text.contains("partition 3 on host: 40 s, read 19.5 KiB"))
    assert(text.contains("20 times the bytes of the median task."))
    assert(text.contains("MultiFullJoin was not split: a limit."))
    assert(text.contains("Raise it."))
    assert(text.contains("python -m pyspark_skewext report EVENTLOG --query 12 prints"))
    assert(QueryVerdict(12, Seq(slow() -> Seq(whole))).head \@ "class" === "alert alert-warning")
  }

  test("the slowest stage comes first, and even ones are left out") {
    val slower = StageTasks(8, prepares = false, 3, 0, slow().ran.map(t => t.copy(run = 2 * t.run)))
    val even = stage(task(0, 50000), task(1, 50000)).copy(stage = 9)
    val text = shown(slow() -> Seq(join), even -> Seq(join), slower -> Seq(join))
    assert("Stage \\d".r.findAllIn(text).toSeq === Seq("Stage 8", "Stage 7"))
  }

  test("a split that a limit keeps long names the limit") {
    val split = join.copy(split = Some("2 pieces"), limit = Some("a block is large"))
    val text = shown(slow() -> Seq(split))
    assert(text.startsWith("Stage 7, MultiFullJoin by k, split 2 pieces: uneven: 38 s to win"))
    assert(text.contains("The longest task of the split is not shorter: a block is large."))
  }

  test("the cause is what the task read, in bytes or rows, or neither") {
    assert(QueryVerdict.cause(slow(bytes = 3000)).contains("3 times the bytes"))
    assert(QueryVerdict.cause(slow(rows = 50)).contains("5 times the rows"))
    assert(QueryVerdict.cause(slow()).contains("no more than the median task"))
    // The median task may have read nothing.
    val idle = stage(task(0, 9000, 5000), task(1, 9, 0), task(2, 9, 0))
    assert(QueryVerdict.cause(idle).contains("5,000 times the bytes"))
  }
}
