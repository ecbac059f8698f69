package io.github.skewext.latest

import io.github.skewext.MultiJoinTest
import io.github.skewext.rows.{GroupingSettings, JoinKeys}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Descending, SortOrder, UnsafeProjection}
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.skewext.{TestMemory, TestTask}
import org.apache.spark.sql.types.{DataType, LongType}

/** Latest rows of tasks with little memory, in which many rows have a null key. */
class LatestRowsMemorySuite extends MultiJoinTest {

  private val types = Seq[DataType](LongType, LongType)

  private def column(i: Int) = BoundReference(i, types(i), nullable = true)

  private def task(sortAlways: Boolean) = LatestTask(
    types,
    JoinKeys(Seq(Seq(column(0))), 64, nullsEqual = true),
    ordered = None,
    Seq(SortOrder(column(1), Descending)),
    GroupingSettings(sortAlways, Int.MaxValue, 4096),
    SQLMetrics.createMetric(spark.sparkContext, "rows"),
    SQLMetrics.createMetric(spark.sparkContext, "spilled"))

  /** The number of latest rows, and the times of those without a key. */
  private def latest(key: Long => Any, sortAlways: Boolean, pages: Int): (Int, Set[Any]) = {
    val page = 1 << 14
    TestTask.run(TestMemory.limited(pages * page, page)) { _ =>
      val toUnsafe = UnsafeProjection.create(types.toArray)
      val rows = Iterator.range(0, 20000).map(i => toUnsafe(InternalRow(key(i), i.toLong)))
      val found = new LatestRowsIterator(task(sortAlways), rows).toScala.map { row =>
        (if (row.isNullAt(0)) null else row.getLong(0)) -> row.getLong(1)
      }.toVector
      (found.size, found.collect { case (null, time) => time: Any }.toSet)
    }
  }

  for (sortAlways <- Seq(true, false))
    test(s"rows with a null key are one group in little memory, sorted: $sortAlways") {
      // The first row with a null key comes at any fill of the memory.
      for (pages <- 12 to 20; first <- Seq(3000, 9000, 9333, 9666, 10000)) {
        val (rows, ofNull) =
          latest(i => if (i >= first && i % 2 == 0) null else i % 7919, sortAlways, pages)
        assert(ofNull === Set(19998L), s"$pages $first")
        assert(
          rows === 1 + (0 until 20000)
            .filterNot(i => i >= first && i % 2 == 0)
            .map(_ % 7919)
            .distinct
            .size)
      }
    }
}
