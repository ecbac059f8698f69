package io.github.skewext.skew.run

import io.github.skewext.join.InputRole
import io.github.skewext.join.InputRole.{Excluded, Present, Required}
import io.github.skewext.join.exec.MultiJoinTaskTest
import io.github.skewext.rows.NormalizedKeys
import io.github.skewext.skew.plan.{SplitTask, TaskShare}

import org.apache.spark.sql.skewext.{TestMemory, TestTask}

/** A task of a skewed partition, with as much memory as the test likes. */
class SplitTasksSuite extends MultiJoinTaskTest {

  /**
   * The second column of the rows of `left` that come out, and how many rows of `right`, which shows
   * nothing, were kept on the way.
   */
  private def residual(
      memory: TestMemory,
      role: InputRole,
      left: Iterator[Long],
      right: Iterator[Long]): (Seq[Long], Long) = {
    val task = join(Required, role)
    val tasks = SplitTasks(
      IndexedSeq(SplitTask.Residual(1, None, TaskShare.NoRows)),
      NormalizedKeys(Seq(key, key), 64),
      Seq.fill(2)(RowShare(Nil, allColumns = true)),
      metric,
      metric)
    val shown = TestTask.run(memory) { _ =>
      tasks
        .join(task, 0, Array(() => rows(left), () => rows(right)))
        .map(_.getLong(0))
        .toList
    }
    (shown, task.metrics.inputRows(1).value)
  }

  test("an input that is not shown: with memory for the keys, and without") {
    val n = 20000L
    // Every key comes twice on the left, and every third one three times on the right.
    def left = (0L until 2 * n).iterator.map(_ % n)
    def right = (0L until 3 * n).iterator.map(_ % n).filter(_ % 3 == 0)
    for {
      role <- Seq(Present, Excluded)
      (memory, all) <- Seq(
        TestMemory.limited(1 << 26) -> false,
        TestMemory.limited(1500L << 10) -> true)
    } withClue(s"$role, $all: ") {
      val there = right.toSet
      val (shown, kept) = residual(memory, role, left, right)
      val expected =
        left.zipWithIndex.filter { case (k, _) => there(k) == (role == Present) }.map(_._2)
      assert(shown.sorted === expected.map(_.toLong).toSeq)
      assert(kept === (if (all) right.size else there.size))
    }
  }
}
