package io.github.skewext.explain.ui

import io.github.skewext.explain.report.{ExecutedTask, StageTasks}

import org.apache.spark.SparkFunSuite

/** Tasks as bars. */
class TaskBarsSuite extends SparkFunSuite {

  private def bars(runs: Long*): Seq[(String, Double)] = {
    val tasks = runs.zipWithIndex.map { case (run, i) =>
      ExecutedTask(i, "host", run, 0, 0, 0, 0, 0, 0, 0)
    }
    val drawn = TaskBars.of(StageTasks(1, prepares = false, tasks.size, failed = 0, tasks))
    (drawn \ "rect").map(bar => (bar \@ "fill", (bar \@ "height").toDouble))
  }

  test("a bar is as high as its task took, and of another colour from twice the median on") {
    val Seq((hot, first), (twice, _), (usual, third), (_, last)) = bars(400, 200, 100, 100)
    assert(hot !== usual)
    // The median is 150.
    assert(twice === usual)
    assert(first === 4 * third && third === last)
  }

  test("tasks that took no time have bars, too") {
    assert(bars(0, 0).forall(_._2 === 1))
  }
}
