package io.github.skewext.explain.ui

import io.github.skewext.explain.report.{ExecutedJoin, ExecutedTask, QuerySettings, StageTasks, TaskAdvice}

import org.apache.spark.SparkFunSuite

/** The verdict, which is the first box of a query's page. */
class QueryViewSuite extends SparkFunSuite {

  private val join =
    ExecutedJoin("MultiFullJoin", "", Some(Seq("k")), None, None, None, None, Nil)

  private def advice(runs: Long*): TaskAdvice = {
    val tasks = runs.map(ExecutedTask(3, "host", _, 0, 1000, 10, 0, 0, 0, 0))
    val stage = StageTasks(7, prepares = false, tasks.size, failed = 0, tasks)
    val settings = QuerySettings(skewextLoaded = true, "", Nil, 200, 1 << 28, 5.0, 1 << 26)
    new TaskAdvice(Seq(stage -> Seq(join)), 1, settings)
  }

  test("a green box says that no partition needs a split") {
    val box = QueryView.verdict(12, advice(9, 8))
    assert(box \@ "class" === "alert alert-success")
    assert(box.text.trim.startsWith("The tasks of joins are even: no partition needs a split"))
    assert(!box.text.contains("python"))
  }

  test("a yellow box has the advice, and a command without a session") {
    val slow = advice(40000, 2000, 2000)
    val box = QueryView.verdict(12, slow)
    assert(box \@ "class" === "alert alert-warning")
    assert((box \ "div").head.text === slow.sentences.head)
    assert(box.text.contains("python -m pyspark_skewext report EVENTLOG --query 12 says the same"))
  }
}
