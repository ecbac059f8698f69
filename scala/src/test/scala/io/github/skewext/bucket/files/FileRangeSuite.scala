package io.github.skewext.bucket.files

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.PartitionedFile

/** Slices of a bucket's files: whatever the files are by now, each row is in one slice. */
class FileRangeSuite extends AnyFunSuite {

  private def file(name: String, length: Long): PartitionedFile =
    PartitionedFile(InternalRow.empty, SparkPath.fromUrlString(s"file:/t/$name"), 0, length)

  private def range(name: String, start: Long, length: Long, of: Long): FileRange =
    FileRange(s"file:/t/$name", start, length, of, length)

  private val ranges = Seq(
    range("a", 0, 30, 100),
    range("a", 30, 50, 100),
    range("a", 80, 20, 100),
    range("b", 0, 40, 40),
    range("c", 0, 10, 10))

  private def slices(files: PartitionedFile*)(cuts: Int*): Seq[Seq[(String, Long, Long)]] =
    (0 +: cuts).zip(cuts :+ ranges.size).map { case (from, until) =>
      FileRange.select(files.toArray, ranges, from, until).toSeq.map { f =>
        (f.toPath.getName, f.start, f.length)
      }
    }

  private val (a, b, c) = (file("a", 100), file("b", 40), file("c", 10))

  test("neighbouring ranges of a file are read as one") {
    assert(
      slices(a, b, c)(2) ===
        Seq(Seq(("a", 0, 80)), Seq(("a", 80, 20), ("b", 0, 40), ("c", 0, 10))))
    assert(slices(a, b, c)() === Seq(Seq(("a", 0, 100), ("b", 0, 40), ("c", 0, 10))))
  }

  test("files that are gone, new, of another length, or there twice") {
    val (first, last) = (Seq(("a", 0, 30)), Seq(("a", 30, 70)))
    assert(slices(a)(1) === Seq(first, last))
    assert(slices(a, file("new", 5))(1) === Seq(first :+ (("new", 0, 5)), last))
    assert(slices(file("a", 101))(1) === Seq(Seq(("a", 0, 101)), Nil))
    assert(slices(a, a)(1) === Seq(first ++ first, last ++ last))
    assert(slices()(1) === Seq(Nil, Nil))
  }
}
