package io.github.skewext.asof.exec

import io.github.skewext.asof.{AsOfDirection, AsOfMatch}
import io.github.skewext.join.exec.MultiJoinTaskTest
import io.github.skewext.rows.{GroupingSettings, InputColumn, JoinKeys, KeyOrder, KillCheck, TaskOutput}

import org.apache.spark.TaskKilledException
import org.apache.spark.sql.skewext.{TestMemory, TestTask}
import org.apache.spark.sql.types.LongType

/** A task that is killed while all that it needs is in its memory. */
class AsOfInterruptionSuite extends MultiJoinTaskTest {

  /** An inner join by a key and a number. */
  private def asOf(grouping: Option[GroupingSettings]): AsOfTask = {
    val time = InputColumn(0, 1, LongType, nullable = true)
    val at = Seq.fill(2)(key :+ key.head.copy(ordinal = 1))
    AsOfTask(
      output = TaskOutput(Seq.fill(2)(Seq(LongType, LongType)), Seq(time), makesRows = true),
      inner = true,
      keys = AsOfKeys(
        same = JoinKeys(Seq.fill(2)(key), 64),
        present = JoinKeys(at, 64),
        order = KeyOrder(at),
        timeOrder = KeyOrder(at.map(_.tail)),
        times = at.map(_.last)),
      tables = Seq(AsOfTable(AsOfMatch(AsOfDirection.Backward, exact = true), Nil, Nil)),
      grouping = grouping,
      metrics = AsOfMetrics(metric, metric, metric))
  }

  for {
    (name, grouping) <- Seq(
      "grouped" -> Some(GroupingSettings(sortAlways = false, Long.MaxValue, 4096)),
      "sorted" -> None)
  } test(s"a killed task ends while no row of the spine matches: $name inputs") {
    val n = 2 * KillCheck.StepsUnchecked
    TestTask.run(TestMemory.limited(1 << 26)) { context =>
      var read = 0
      def spine = rows(Iterator.range(0, n).map { i =>
        read += 1
        // Sorted inputs are read while the task searches for a match, and others before.
        if (i == (if (grouping.isEmpty) 10 else n - 1)) TestTask.kill(context)
        i.toLong
      })
      val joined = asOf(grouping)(0, Array(() => spine, () => rows(Iterator(-1L))))
      intercept[TaskKilledException](joined.hasNext)
      if (grouping.isEmpty) assert(read <= KillCheck.StepsUnchecked + 1)
    }
  }
}
