package io.github.skewext.bucket

import org.scalatest.funsuite.AnyFunSuite

/** Which of a table's new files a write has made, and which rows the table lacks. */
class WriteCheckSuite extends AnyFunSuite {

  private val Seq(a, b) =
    Seq("a", "b").map(digit => s"${digit * 8}-${digit * 4}-${digit * 4}-${digit * 4}-${digit * 12}")

  private def file(task: Int, write: String, bucket: Int, number: Int = 0): String =
    f"part-$task%05d-${write}_$bucket%05d.c$number%03d.snappy.parquet"

  private def ownFiles(
      counted: Map[(Int, Int), Long],
      files: Map[String, Long],
      claim: String => Boolean = _ => true): Either[WriteCheck.Missing, Set[String]] =
    WriteCheck.ownFiles(counted, files, claim)

  private def missing(counted: Map[(Int, Int), Long], files: (String, Long)*): WriteCheck.Missing =
    ownFiles(counted, files.toMap).left.toOption.get

  private val counted = Map((0, 0) -> 5L, (1, 1) -> 7L)

  test("finds the files of a write among those of others, whatever their number") {
    val own = Map(file(0, a, 0) -> 5L, file(1, a, 1) -> 4L, file(1, a, 1, number = 1) -> 3L)
    val others = Map(file(0, b, 0) -> 5L, file(1, b, 1) -> 9L)
    assert(ownFiles(counted, own ++ others) === Right(own.keySet))
    assert(ownFiles(counted, own + ("other.parquet" -> 3L)) === Right(own.keySet))
    assert(ownFiles(Map.empty, others) === Right(Set.empty))
    assert(ownFiles(Map.empty, Map.empty) === Right(Set.empty))
  }

  test("counts missing rows by bucket") {
    val part = missing(counted, file(0, a, 0) -> 5L, file(1, b, 1) -> 900L)
    assert(part === WriteCheck.Missing(Map(1 -> 7L), found = 5, isLeast = false))
    assert(missing(counted) === WriteCheck.Missing(Map(0 -> 5L, 1 -> 7L), 0, isLeast = false))
    // Two writes may be it.
    val either = missing(counted, file(0, a, 0) -> 5L, file(1, b, 1) -> 7L)
    assert(either === WriteCheck.Missing(Map(0 -> 5L), found = 7, isLeast = true))
    val several = missing(Map((0, 0) -> 5L, (0, 1) -> 2000L, (3, 1) -> 1L), file(0, a, 1) -> 2L)
    assert(several.byBucket === Map(0 -> 5L, 1 -> 1999L))
  }

  test("the files of a write are not those of another one that is alike") {
    val both =
      Map(file(0, a, 0) -> 5L, file(1, a, 1) -> 7L, file(0, b, 0) -> 5L, file(1, b, 1) -> 7L)
    val claimed = scala.collection.mutable.Set.empty[String]
    val Seq(first, second) = Seq.fill(2)(ownFiles(counted, both, claimed.add).toOption.get)
    assert(first.size === 2 && second === both.keySet -- first)
    // All files of the third one are lost.
    val lost = ownFiles(counted, both, claimed.add).left.toOption.get
    assert(lost === WriteCheck.Missing(Map(0 -> 5L, 1 -> 7L), found = 0, isLeast = false))
  }

  test("the error names the count of missing rows, their buckets, and the cure") {
    val message = missing(Map((0, 0) -> 5L, (0, 1) -> 2000L), file(0, a, 1) -> 800L).message("db.t")
    assert(
      message === "The write to db.t lost rows: its tasks wrote 2,005 rows, and 1,205 of them are " +
        "not in the table's files, of the buckets 0 (5), 1 (1,200). Another write to the table may " +
        "have removed them. The other rows are in the table: remove them before you write again.")
    val many = WriteCheck.Missing((0 until 30).map(_ -> 1L).toMap, 0, isLeast = true).message("t")
    assert(many.contains("at least 30 of them") && many.contains("19 (1) and 10 more. Another"))
    assert(!many.contains("write again"))
  }

  test("names of other committers are no reason for an error") {
    val ofTasks =
      (0 to 1).map(task => s"part-0000$task-tid-4-$a-$task-c000_0000$task.parquet" -> 1L)
    intercept[IllegalStateException](ownFiles(counted, ofTasks.toMap))
    // Beside files of a write whose rows are missing, they tell nothing.
    val part = missing(counted, "other.parquet" -> 3L, file(0, a, 0) -> 5L)
    assert(part === WriteCheck.Missing(Map(1 -> 7L), found = 5, isLeast = false))
  }
}
