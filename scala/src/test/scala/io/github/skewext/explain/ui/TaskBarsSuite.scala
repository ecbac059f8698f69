package io.github.skewext.explain.ui

import io.github.skewext.explain.report.{ExecutedTask, StageTasks}

import org.apache.spark.SparkFunSuite

/** Tasks as bars. */
class TaskBarsSuite extends SparkFunSuite {

  private def stage(runs: Long*): StageTasks = {
    val tasks = runs.zipWithIndex.map { case (run, i) =>
      ExecutedTask(i, "host", run, 0, 0, 59144, 0, 0, 0, 0)
    }
    StageTasks(1, prepares = false, tasks.size, failed = 0, tasks)
  }

  private def bars(runs: Long*): Seq[(String, Double)] = {
    val drawn = TaskBars.of(stage(runs: _*))
    (drawn \ "rect").map(bar => (bar \@ "fill", (bar \@ "height").toDouble))
  }

  test("a bar is as high as its task took, and of another colour from twice the median on") {
    val Seq((hot, first), (twice, _), (usual, third), (_, last)) = bars(400, 200, 100, 100)
    assert(hot !== usual)
    // The median is 150.
    assert(twice === usual)
    assert(first === 4 * third && third === last)
  }

  test("the axis ends at the longest task, and the legend explains colours and line") {
    val drawn = TaskBars.of(stage(400, 100, 100))
    val texts = (drawn \ "text").map(_.text)
    assert(texts.take(2) === Seq("0.4 s", "0"))
    assert(texts.takeRight(3) === Seq("over 2x median", "others", "median 0.1 s"))
    val fills = (drawn \ "rect").map(_ \@ "fill").distinct
    assert((drawn \ "circle").map(_ \@ "fill") === fills)
    // Spark's pages may be dark.
    assert((drawn \ "text").map(_ \@ "fill").distinct === Seq("currentColor"))
  }

  test("one judgement of uneven tasks: the gain decides whether they are slow") {
    def judged(runs: Long*) = {
      val tasks = stage(runs: _*)
      (tasks.uneven, tasks.isSlow, tasks.verdict)
    }
    assert(judged(190, 100, 100) === ((0, false, None)))
    assert(judged(111, 19, 19) === ((1, false, Some("uneven, but only 92 ms to win"))))
    assert(judged(40000, 5000, 2000, 2000, 2000) === ((2, true, Some("uneven: 38 s to win"))))
    assert(judged(1500) === ((0, false, None)))
  }

  test("numbers have separators, and one task is no tasks") {
    assert(
      TaskBars.told(stage(5).ran.head) === "partition 0 on host: 5 ms, read 0.0 B, 59,144 rows")
    assert(TaskBars.caption(stage(5)).startsWith("1 task; the slowest took 5 ms"))
    assert(TaskBars.caption(stage(5, 4)).startsWith("2 tasks; "))
    assert(
      TaskBars.caption(stage(Seq.fill(1200)(5L): _*)).startsWith("the slowest 100 of 1,200 tasks"))
  }

  test("tasks that took no time have bars, too") {
    assert(bars(0, 0).forall(_._2 === 1))
  }
}
