package io.github.skewext.execution.split

import io.github.skewext.execution.grouping.{GroupingSettings, JoinKeys}
import io.github.skewext.execution.{InputColumn, MultiJoinMetrics, MultiJoinTask, NormalizedKeys}
import io.github.skewext.plan.InputRole
import io.github.skewext.plan.InputRole.{Excluded, Present, Required}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.skewext.{TestMemory, TestTask}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.{DataType, LongType}

/** A task of a skewed partition, with as much memory as the test likes. */
class SplitTasksSuite extends SharedSparkSession {

  // It warns of the threads of Spark's own pools.
  override protected def doThreadPostAudit(): Unit = ()

  private val types: Seq[DataType] = Seq(LongType, LongType)

  private def metric = SQLMetrics.createMetric(spark.sparkContext, "rows")

  /**
   * The second column of the rows of `left` that come out, and how many rows of `right`, which shows
   * nothing, were kept on the way.
   */
  private def residual(
      memory: TestMemory,
      role: InputRole,
      left: Iterator[Long],
      right: Iterator[Long]): (Seq[Long], Long) = {
    val keys = Seq.fill(2)(Seq(BoundReference(0, LongType, nullable = true)))
    val rowsOfRight = metric
    val task = MultiJoinTask(
      inputTypes = Seq(types, types),
      keys = JoinKeys(keys, 64),
      roles = Seq(Required, role),
      output = Seq(InputColumn(0, 1, LongType, nullable = true)),
      makesRows = true,
      withIndicator = false,
      ordered = None,
      grouping = GroupingSettings(sortAlways = false, Long.MaxValue, 4096),
      metrics = MultiJoinMetrics(metric, Seq(metric, rowsOfRight), metric, metric, metric, metric))
    val tasks = SplitTasks(
      IndexedSeq(SplitTask.Residual(1, None, TaskShare.NoRows)),
      NormalizedKeys(keys, 64),
      Seq.fill(2)(RowShare(Nil, allColumns = true)),
      Map.empty,
      metric,
      metric)
    def rows(of: Iterator[Long]): Iterator[InternalRow] = {
      val projection = UnsafeProjection.create(types.toArray)
      of.zipWithIndex.map { case (k, v) => projection(InternalRow(k, v.toLong)) }
    }
    val shown = TestTask.run(memory) { _ =>
      SplitJoinTask(task, tasks)(0, Array(() => rows(left), () => rows(right)))
        .map(_.getLong(0))
        .toList
    }
    (shown, rowsOfRight.value)
  }

  test("an input that is not shown: with memory for the keys, and without") {
    val keys = 20000L
    // Every key comes twice on the left, and every third one three times on the right.
    def left = (0L until 2 * keys).iterator.map(_ % keys)
    def right = (0L until 3 * keys).iterator.map(_ % keys).filter(_ % 3 == 0)
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
