package io.github.skewext.join.exec

import java.util.concurrent.{CountDownLatch, FutureTask}

import scala.util.Try
import scala.util.control.NonFatal

import io.github.skewext.join.InputRole.Optional
import io.github.skewext.rows.JoinKeys

import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Abs
import org.apache.spark.sql.skewext.{SparkShims, TestConsumer, TestMemory, TestTask}
import org.apache.spark.unsafe.Platform

/**
 * A join whose rows are asked for by another thread than the task's own, which has opened it: so Spark
 * feeds Python and scripts.
 */
class DrivingThreadSuite extends MultiJoinTaskTest {

  private val pageSize = 1 << 16

  /** What comes of it on a thread as Spark starts them. */
  private def inOtherThread[T](context: TaskContext)(body: => T): FutureTask[Try[T]] = {
    val result = new FutureTask(() => {
      TestTask.setContext(context)
      try {
        Try(body)
      } catch {
        case e: SparkOutOfMemoryError => throw new AssertionError(e)
      }
    })
    new Thread(result).start()
    result
  }

  /** Does something at a row. */
  private def at(row: Int, of: Iterator[InternalRow])(what: => Unit): Iterator[InternalRow] =
    of.zipWithIndex.map { case (r, i) =>
      if (i == row) what
      r
    }

  private val numRows = 60000

  test("rows go to files where the thread that brings them needs memory for something else") {
    TestTask.run(TestMemory.shared(8L << 20, pageSize)) { context =>
      val other = new TestConsumer(context)
      var granted = 0L
      val joined = join(Optional, Optional)(
        0,
        Array(
          () => rows(numRows, numRows),
          () => at(20000, rows(numRows, numRows)) { granted = other.acquire(7L << 20) }))
      val count = inOtherThread(context) {
        joined.map(_ => if (granted > 0) other.release()).size
      }
      assert(count.get.get === numRows)
      assert(granted === (7L << 20))
    }
  }

  test("nothing is taken from the thread that brings rows while it does") {
    TestTask.run(TestMemory.shared(8L << 20, pageSize)) { context =>
      val other = new TestConsumer(context)
      val begun = new CountDownLatch(1)
      val joined = join(Optional, Optional)(
        0,
        Array(
          () => at(20000, rows(numRows, numRows))(begun.countDown()),
          () => rows(numRows, numRows)))
      val sum = inOtherThread(context)(joined.map(_.getLong(0)).sum)
      begun.await()
      // What the task's own thread has above. It leaves what the join cannot do without.
      while (!sum.isDone) {
        other.acquire(4L << 20)
        other.release()
      }
      assert(sum.get.get === numRows.toLong * (numRows - 1) / 2)
    }
  }

  test("a thread that runs out of memory fails, and does not die of it") {
    TestTask.run(TestMemory.limited(3L << 20, pageSize)) { context =>
      val other = new TestConsumer(context)
      val joined = join(Optional, Optional)(
        0,
        Array(
          () => at(10, rows(numRows, numRows))(throw SparkShims.outOfMemory("no memory")),
          () => rows(numRows, numRows)))
      val failed = inOtherThread(context)(joined.size).get
      assert(failed.failed.toOption.exists(e => NonFatal(e) && e.getMessage.contains("no memory")))
      other.release()
    }
  }

  test("two threads of a task read the join, as the sides of a zip") {
    TestTask.run(TestMemory.shared(64L << 20, pageSize)) { context =>
      // The keys are computed, so that an iterator needs buffers for them.
      val task = join(Optional, Optional).copy(keys = JoinKeys(Seq.fill(2)(Seq(Abs(key.head))), 64))
      def sum(): Long =
        task(0, Array.fill(2)(() => rows(numRows, numRows)))
          .map(row => if (row.isNullAt(0)) -1000000L else row.getLong(0))
          .sum
      val other = inOtherThread(context)(sum())
      val all = numRows.toLong * (numRows - 1) / 2
      assert((sum(), other.get.get) === ((all, all)))
    }
  }

  test("a thread that goes on after the end of the task writes to no page of others") {
    val (begun, ended) = (new CountDownLatch(1), new CountDownLatch(1))
    // Spark gives freed pages of this size to the next task.
    val memory = TestMemory.shared(32L << 20, 1 << 20)
    val result = TestTask.run(memory) { context =>
      val joined = join(Optional, Optional)(
        0,
        Array(
          () =>
            at(20000, rows(numRows, numRows)) {
              begun.countDown()
              ended.await()
            },
          () => rows(numRows, numRows)))
      val result = inOtherThread(context)(joined.size)
      begun.await()
      result
    }
    TestTask.run(memory) { context =>
      val next = new TestConsumer(context)
      val pages = Seq.fill(8)(next.page(1 << 20))
      pages.foreach(_.fill(1))
      ended.countDown()
      val failed = result.get.failed.toOption
      assert(failed.exists(_.getMessage.contains("task has ended")), failed)
      for (page <- pages; at <- 0L until page.size) {
        assert(Platform.getByte(page.getBaseObject, page.getBaseOffset + at) == 1)
      }
      pages.foreach(next.giveBack)
    }
  }
}
