package io.github.skewext.rows

import java.io.IOException

import scala.collection.JavaConverters._
import scala.concurrent.duration._

import org.apache.spark.sql.skewext.{TaskInternals, TestConsumer, TestMemory, TestTask}

/** The parts that bring rows together by key: where memory is short. */
class GroupsMemorySuite extends GroupsTest {

  // Rows of about 550 bytes in pages of 64 KB.
  private val large: Seq[Input] = Seq(
    (0 until 3000).map(r => r -> s"a$r"),
    (0 until 3000).map(r => (r * 2) -> s"b$r"),
    (0 until 600).map(r => (if (r % 3 == 0) 77 else r) -> s"c$r"))
  private val width = 500
  // 4500 keys, one of which has 201 rows in one input.
  private val numCombinations = 4500 - 1 + 201

  private def totals(groups: KeyGroups): Seq[Long] = {
    var combinations, numGroups, hash = 0L
    while (groups.nextGroup()) {
      numGroups += 1
      do {
        combinations += 1
        groups.rows.foreach(row => if (row != null) hash += row.hashCode())
      } while (groups.nextCombination())
    }
    Seq(combinations, numGroups, hash)
  }

  test("less memory than rows: rows go over to sorting, which spills") {
    val free = TestTask.run(TestMemory.limited(Long.MaxValue)) { _ =>
      totals(gather(large, width = width).result())
    }
    assert(free.take(2) === Seq(numCombinations, 4500))
    for (kilobytes <- Seq(3000, 2000, 1400)) withClue(s"$kilobytes KB: ") {
      TestTask.run(TestMemory.limited(kilobytes * 1024L)) { context =>
        val gathered = gather(large, width = width)
        val groups = gathered.result()
        assert(groups.getClass === classOf[HashSortedGroups])
        assert(totals(groups) === free)
        assert(gathered.spillSize > 0)
        assert(context.taskMetrics().memoryBytesSpilled > 0)
      }
    }
  }

  test("spill files that are read at a time are bounded", Slow) {
    // As read-ahead has a thread for each of them.
    def filesOpen = Thread.getAllStackTraces.keySet.asScala.count(_.getName == "read-ahead")
    val inputs: Seq[Input] =
      (0 until 4).map(i => (0 until 30000).map(r => (r * (i + 1)) -> s"$i.$r"))
    val before = filesOpen
    TestTask.run(TestMemory.limited(1400 * 1024L)) { _ =>
      val groups = gather(inputs, settings.copy(sortAlways = true), width = width).result()
      assert(groups.nextGroup())
      eventually(timeout(10.seconds)) {
        assert(filesOpen - before <= InputSorters.MaxFiles + inputs.size)
      }
      var numGroups = 1
      while (groups.nextGroup()) numGroups += 1
      assert(numGroups === inputs.flatMap(_.map(_._1)).distinct.size)
    }
  }

  test("rows larger than a page, and larger than any chunk") {
    val wide: Input = Seq(1 -> 10, 2 -> 20000, 3 -> 70000, 3 -> 300000, 1 -> 16000)
      .map { case (k, n) => k -> "x" * n }
    val inputs: Seq[Input] = Seq(wide, wide.reverse)
    for (sort <- Seq(false, true)) {
      TestTask.run(TestMemory.limited(Long.MaxValue)) { _ =>
        val groups = gather(inputs, settings.copy(sortAlways = sort))
        assert(combinations(groups.result()) === expected(inputs))
      }
    }
  }

  test("memory outside of the heap") {
    for (sort <- Seq(false, true); megabytes <- Seq(64, 2)) {
      val memory = TestMemory.offHeap(megabytes << 20)
      val free = TestTask.run(memory) { _ =>
        totals(gather(large, settings.copy(sortAlways = sort), width = width).result())
      }
      assert(free.head === numCombinations)
      assert(memory.inUse === 0)
    }
  }

  test("a share of the memory that shrinks while rows come in") {
    val memory = TestMemory.shared(8L << 20)
    TestTask.run(memory) { _ =>
      val groups = new SpillableGroups(keys(1), Array(2), Array(false), settings)
      val rows = rowsOf((0 until 40000).map(r => r -> "." * width))
      var n = 0
      while (memory.inUse < (7 << 20)) {
        val row = rows.next()
        groups.insert(0, keys(1).hash(0, row), row)
        n += 1
      }
      memory.startOtherTask()
      rows.take(20000 - n).foreach(row => groups.insert(0, keys(1).hash(0, row), row))
      groups.finishInput(0)
      assert(totals(groups.result()).head === 20000)
    }
  }

  test("a share of the memory that is smaller after the last row: others of the task get some") {
    val memory = TestMemory.shared(8L << 20)
    TestTask.run(memory) { context =>
      val groups = new SpillableGroups(keys(1), Array(2), Array(false), settings)
      rowsOf((0 until 5000).map(r => r -> "." * width)).foreach { row =>
        groups.insert(0, keys(1).hash(0, row), row)
      }
      groups.finishInput(0)
      assert(memory.inUse > (4 << 20))
      memory.startOtherTask()
      val result = groups.result()
      val above = new TestConsumer(context)
      assert(above.acquire(1 << 16) === (1 << 16))
      above.release()
      assert(totals(result).head === 5000)
    }
  }

  test("rows beyond those that have a number are spilled") {
    TestTask.run(TestMemory.limited(Long.MaxValue)) { context =>
      val chunks = new RowChunks(1, TaskInternals.memory(context), 1 << 16, mostRows = 1000)
      val row = rowsOf(Seq(1 -> "a")).next()
      val inserted = Iterator.from(0).takeWhile(_ => chunks.insert(0, 1L, row)).size
      assert(inserted > 1000 && inserted < 2000)
      chunks.drain((_, _, _, _, _) => ())
      assert(chunks.insert(0, 1L, row))
      chunks.free()
    }
  }

  test("rows that are lost while another consumer needs memory") {
    TestTask.run(TestMemory.limited(Long.MaxValue)) { context =>
      val chunks = RowChunks(1, context)
      val full = new IOException("no space left")
      chunks.whenAskedForMemory(() => chunks.drain((_, _, _, _, _) => throw full))
      val row = rowsOf(Seq(1 -> "a")).next()
      def insert(): Boolean = chunks.keeping(chunks.insert(0, 1L, row))
      assert(insert())
      assert(intercept[IOException](chunks.spill(1L, new TestConsumer(context))) eq full)
      assert(chunks.getUsed === 0)
      for (next <- Seq(
          () => insert(),
          () => chunks.seal(),
          () => chunks.drain((_, _, _, _, _) => ())))
        assert(intercept[IOException](next()).getCause eq full)
    }
  }

  test("more pages than Spark can number", Slow) {
    // Chunks of rows in memory are up to 16 KB.
    for ((sort, rows) <- Seq(false -> 150000, true -> 40000)) withClue(s"sort: $sort: ") {
      TestTask.run(TestMemory.limited(Long.MaxValue, pageSize = 1 << 12)) { _ =>
        val all = settings.copy(sortAlways = sort)
        val groups = new SpillableGroups(keys(1), Array(2), Array(false), all)
        val value = "." * width
        rowsOf((0 until rows).map(_ -> value)).foreach { row =>
          groups.insert(0, keys(1).hash(0, row), row)
        }
        groups.finishInput(0)
        assert(totals(groups.result()).head === rows)
        assert(groups.spillSize > 0)
      }
    }
  }

  test("another task takes memory that was freed for sorting: rows are spilled first") {
    val page = 1L << 16
    val inputs = large.take(2)
    val rows = inputs.map(_.size).sum
    def sorted(
        maxRows: Long,
        beforeLastRow: TestMemory => Unit = _ => (),
        atTheEnd: TestMemory => Unit = _ => ()): Seq[Long] = {
      val memory = TestMemory.limited(Long.MaxValue, page)
      TestTask.run(memory) { _ =>
        val all = settings.copy(maxRowsInMemory = maxRows)
        val groups = new SpillableGroups(keys(2), Array(2, 2), Array(false, false), all)
        for ((input, i) <- inputs.zipWithIndex) {
          rowsOf(input.map { case (k, v) => (k, v + "." * width) }).zipWithIndex.foreach {
            case (row, n) =>
              if (i == 1 && n == input.size - 1) beforeLastRow(memory)
              groups.insert(i, keys(2).hash(i, row), row)
          }
          groups.finishInput(i)
        }
        atTheEnd(memory)
        val result = groups.result()
        assert(result.getClass === classOf[HashSortedGroups])
        totals(result) :+ groups.spillSize
      }
    }
    def leave(free: Long, wanted: Long)(memory: TestMemory): Unit = {
      memory.limit(free)
      memory.letOtherTaskWaitFor(wanted)
    }
    val expected = sorted(maxRows = 0)
    assert(expected.last === 0)
    // There is no memory for tables, and what is kept back for a sorter is gone when it is freed.
    val noTables = sorted(Long.MaxValue, atTheEnd = leave(0, 3 * page))
    // One row too many: of what is kept back the sorter's part is taken once more, and then gone.
    val tooMany = sorted(rows - 1L, beforeLastRow = leave(2 * page, (3 + 2) * page))
    // The sorter begins, and of what the rows leave to it finds nothing: the others go to files.
    val midway =
      sorted(rows - 1L, beforeLastRow = leave((2 + 2) * page, (3 + 2 + 20) * page))
    for (found <- Seq(noTables, tooMany, midway)) {
      assert(found.init === expected.init)
      assert(found.last > 0)
    }
  }
}
