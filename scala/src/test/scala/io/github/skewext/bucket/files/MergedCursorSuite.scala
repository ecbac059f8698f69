package io.github.skewext.bucket.files

import io.github.skewext.rows.{KeyOrder, RowCursor}

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

class MergedCursorSuite extends AnyFunSuite {

  private val types = Array[DataType](StringType, LongType)

  private def orderBy(columns: Int*): KeyOrder =
    KeyOrder(Seq(columns.map(i => BoundReference(i, types(i), nullable = true))))

  private def text(value: Any): Any = value match {
    case s: String => UTF8String.fromString(s)
    case other => other
  }

  /** Rows that are all made in the same place, as a reader of files makes them. */
  private def rows(values: Seq[(String, Any)]): Iterator[InternalRow] = {
    val projection = UnsafeProjection.create(types)
    values.iterator.map { case (s, n) => projection(InternalRow(text(s), n)) }
  }

  private def merge(order: KeyOrder, runs: Seq[Seq[(String, Any)]]): Iterator[(String, Any)] = {
    val sources: Seq[RowCursor] = runs.zipWithIndex.map { case (run, i) =>
      new RowFileCursor(rows(run), order, types, () => new IllegalStateException(s"run $i"))
    }
    val merged = new MergedCursor(sources.toArray, order, new SQLMetric("sum"))
    merged.rows.map(values)
  }

  private def values(row: InternalRow): (String, Any) = {
    val s = if (row.isNullAt(0)) null else row.getUTF8String(0).toString
    (s, if (row.isNullAt(1)) null else row.getLong(1))
  }

  private def key(row: (String, Any)): (Boolean, String) =
    (row._1 != null, if (row._1 == null) "" else row._1)

  test("any number of runs, some of them empty, some values equal, some null") {
    val random = new Random(7)
    val values = Seq(null, "", "a", "ab", "the same eight", "the same nine", "z")
    for (n <- 0 to 17) {
      val runs = Seq.fill(n)(
        Seq
          .fill(random.nextInt(6))((values(random.nextInt(values.size)), random.nextLong(): Any))
          .sortBy(key))
      val merged = merge(orderBy(0), runs).toList
      // As a stable sort returns them, so that an attempt that sorts has the same order.
      assert(merged === runs.flatten.sortBy(key).toList)
    }
  }

  test("numbers, their nulls, and the lowest number") {
    val runs = Seq[Seq[Any]](
      Seq(null, Long.MinValue, -1L, 5L),
      Seq(null, null, Long.MinValue, 4L, Long.MaxValue),
      Seq(Long.MaxValue)).map(_.map(n => ("x", n)))
    val merged = merge(orderBy(1), runs).map(_._2).toList
    assert(
      merged === Seq[Any](null, null, null, Long.MinValue, Long.MinValue, -1L, 4L, 5L) ++
        Seq.fill(2)(Long.MaxValue))
  }

  test("several columns") {
    val runs = Seq(Seq(("a", 2L: Any), ("b", 1L)), Seq(("a", 1L: Any), ("a", 3L), ("b", 0L)))
    assert(
      merge(orderBy(0, 1), runs).toList ===
        Seq(("a", 1L), ("a", 2L), ("a", 3L), ("b", 0L), ("b", 1L)))
  }

  test("a run that is not sorted is found, whatever gives it away") {
    val good = Seq(("a", 0L: Any), ("y", 1L))
    for (bad <- Seq(
        Seq[(String, Any)](("b", 0L), ("a", 0L)),
        Seq[(String, Any)](("a", 0L), (null, 0L)),
        Seq[(String, Any)](("the same nine", 0L), ("the same eight", 0L)))) {
      val error = intercept[IllegalStateException](merge(orderBy(0), Seq(good, bad)).toList)
      assert(error.getMessage === "run 1")
    }
    for (bad <- Seq[Seq[Any]](Seq(2L, 1L), Seq(Long.MinValue, null), Seq(0L, null))) {
      intercept[IllegalStateException](merge(orderBy(1), Seq(bad.map(n => ("x", n)))).toList)
    }
    intercept[IllegalStateException](
      merge(orderBy(0, 1), Seq(Seq(("a", 2L: Any), ("a", 1L)))).toList)
  }

  test("asking again whether there is a row changes nothing; after the last there is an error") {
    val merged = merge(orderBy(0), Seq(Seq(("a", 1L: Any)), Seq(("b", 2L: Any))))
    assert(merged.hasNext && merged.hasNext)
    assert(merged.next() === (("a", 1L)))
    assert(merged.next() === (("b", 2L)))
    assert(!merged.hasNext && !merged.hasNext)
    intercept[SparkException](merged.next())
  }

  test("memory of the readers of a task's files") {
    val mb = 1L << 20
    val files = Seq(Seq(10 * mb, 20 * mb), Seq(1024 * mb), Nil)
    assert(SortedFiles.estimate(files, share = 1) === SortedFiles(2, 128 * mb))
    assert(SortedFiles.estimate(files, share = 0.5) === SortedFiles(2, 64 * mb))
    assert(SortedFiles.estimate(Nil, share = 1) === SortedFiles(0, 0))
  }
}
