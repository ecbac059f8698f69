package io.github.skewext.join.exec

import io.github.skewext.join.InputRole.{Excluded, Required}
import io.github.skewext.rows.KillCheck
import org.apache.spark.sql.skewext.{TestMemory, TestTask}


import org.apache.spark.TaskKilledException

/** A task that is killed while all that it needs is in its memory. */
class InterruptionSuite extends MultiJoinTaskTest {

  test("a killed task ends while it returns the combinations of one key") {
    TestTask.run(TestMemory.limited(1 << 26)) { context =>
      val joined =
        join(Required, Required)(0, Array(() => rows(1000, keys = 1), () => rows(1000, keys = 1)))
      assert(joined.hasNext)
      TestTask.kill(context)
      val more = joined.map(_ => 1).take(1000000)
      var seen = 0
      intercept[TaskKilledException](more.foreach(seen += _))
      assert(seen <= KillCheck.StepsUnchecked)
    }
  }

  test("a killed task ends while it returns no rows") {
    val n = 4 * KillCheck.StepsUnchecked
    TestTask.run(TestMemory.limited(1 << 26)) { context =>
      val joined =
        join(Required, Excluded)(0, Array(() => rows(n, keys = n), () => rows(n, keys = n)))
      TestTask.kill(context)
      intercept[TaskKilledException](joined.hasNext)
    }
  }
}
