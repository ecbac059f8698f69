package io.github.skewext.execution.grouping

import scala.collection.JavaConverters._
import scala.collection.mutable
import scala.concurrent.duration._

import io.github.skewext.MultiJoinTest

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.skewext.{TestMemory, TestTask}
import org.apache.spark.sql.types.{DataType, IntegerType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/** The parts that bring rows together by key, without a query around them. */
class GroupsSuite extends MultiJoinTest {

  private val types: Array[DataType] = Array(IntegerType, StringType)

  private type Input = Seq[(Int, String)]

  private def keys(n: Int, hashBits: Int = 64): JoinKeys =
    JoinKeys(Seq.fill(n)(Seq(BoundReference(0, IntegerType, nullable = true))), hashBits)

  private def rowsOf(input: Input): Iterator[UnsafeRow] = {
    val projection = UnsafeProjection.create(types)
    input.iterator.map { case (k, v) => projection(InternalRow(k, UTF8String.fromString(v))) }
  }

  private def shown(row: UnsafeRow): Any =
    if (row == null) null else (row.getInt(0), row.getString(1))

  /**
   * What should come out: for every key the product of its rows, absent inputs as null; and of
   * inputs of which a row is enough the key of one.
   */
  private def expected(
      inputs: Seq[Input],
      single: Int => Boolean = _ => false): Map[Seq[Any], Int] = {
    val all = inputs.flatMap(_.map(_._1)).distinct.flatMap { key =>
      inputs.zipWithIndex.foldLeft(Seq(Seq.empty[Any])) { case (product, (input, i)) =>
        val rows: Seq[Any] = input.filter(_._1 == key)
        val matching = if (single(i)) rows.take(1).map(_ => key) else rows
        for (p <- product; m <- if (matching.isEmpty) Seq(null) else matching) yield p :+ m
      }
    }
    all.groupBy(identity).map { case (k, v) => k -> v.size }
  }

  /** All combinations; checks on the way that each key is one group. */
  private def combinations(
      groups: KeyGroups,
      single: Int => Boolean = _ => false): Map[Seq[Any], Int] = {
    val met = mutable.Set.empty[Int]
    val counts = mutable.Map.empty[Seq[Any], Int].withDefaultValue(0)
    while (groups.nextGroup()) {
      val key = groups.rows.find(_ != null).get.getInt(0)
      assert(met.add(key), s"key $key comes as two groups")
      do {
        assert(groups.rows.filter(_ != null).forall(_.getInt(0) == key))
        counts(groups.rows.toSeq.zipWithIndex.map {
          case (row, i) if single(i) && row != null => key
          case (row, _) => shown(row)
        }) += 1
      } while (groups.nextCombination())
    }
    // Asked again, the end is still the end.
    assert(!groups.nextGroup())
    counts.toMap
  }

  private val settings = GroupingSettings(sortAlways = false, Long.MaxValue, 4096)

  private def gather(
      inputs: Seq[Input],
      settings: GroupingSettings = settings,
      hashBits: Int = 64,
      width: Int = 0,
      single: Int => Boolean = _ => false): SpillableGroups = {
    val groupKeys = keys(inputs.size, hashBits)
    val groups = new SpillableGroups(
      groupKeys,
      inputs.map(_ => 2).toArray,
      inputs.indices.map(single).toArray,
      settings)
    inputs.zipWithIndex.foreach { case (input, i) =>
      rowsOf(input.map { case (k, v) => (k, v + "." * width) })
        .foreach(row => groups.insert(i, groupKeys.hash(i, row), row))
      groups.finishInput(i)
    }
    groups
  }

  /** Unique keys, duplicates in one and in several inputs, hot keys, and keys of one input only. */
  private val samples: Seq[(String, Seq[Input])] = Seq(
    "no rows" -> Seq(Nil, Nil),
    "one row" -> Seq(Nil, Seq(1 -> "a"), Nil),
    "unique keys" -> Seq((1 to 50).map(k => k -> s"a$k"), (30 to 90).map(k => k -> s"b$k")),
    "duplicates in one input" ->
      Seq((1 to 60).map(i => (i % 20) -> s"a$i"), (5 to 30).map(k => k -> s"b$k")),
    "duplicates in all inputs" -> (0 until 4).map { i =>
      (1 to 30).map(r => (r * (i + 1) % 17) -> s"$i.$r")
    },
    "a hot key in one input" -> Seq(
      (1 to 200).map(r => (if (r % 20 == 0) r else 7) -> s"a$r"),
      Seq(7 -> "b", 20 -> "c"),
      Seq(7 -> "d", 40 -> "e")),
    "a hot key in two inputs" -> Seq(
      (1 to 40).map(r => 7 -> s"a$r") :+ (1 -> "x"),
      (1 to 60).map(r => 7 -> s"b$r") :+ (2 -> "y"),
      Seq(7 -> "z", 7 -> "zz")),
    "equal rows" -> Seq(Seq.fill(3)(1 -> "a"), Seq.fill(2)(1 -> "a")),
    "many inputs" -> (0 until 30).map(i => Seq((i % 3) -> s"$i", 5 -> s"$i")))

  for ((name, inputs) <- samples) {
    test(s"$name: hashed, sorted, and gone over at every row") {
      val numRows = inputs.map(_.size).sum
      for {
        single <- Seq[Int => Boolean](_ => false, _ == inputs.size - 1, _ % 2 == 0)
        answer = expected(inputs, single)
        hashBits <- Seq(64, 0, 1, 2)
        (sort, maxRows) <- Seq(false -> Long.MaxValue, true -> Long.MaxValue) ++
          Seq(0, 1, numRows / 2, numRows - 1, numRows).distinct.map(r => false -> r.toLong)
        groupRows <- if (hashBits == 2) Seq(1, 3) else Seq(4096)
      } withClue(s"$hashBits bits, sort $sort, $maxRows rows hashed, $groupRows rows a group: ") {
        TestTask.run(TestMemory.limited(Long.MaxValue)) { _ =>
          val groups =
            gather(inputs, GroupingSettings(sort, maxRows, groupRows), hashBits, single = single)
          assert(combinations(groups.result(), single) === answer)
          assert(groups.peakMemory > 0 || numRows == 0)
        }
      }
    }
  }

  /** As if prefixes of keys had so many bits: the fewer, the more keys have one. */
  private class ShortPrefixes(order: KeyOrder, bits: Int) extends KeyOrder {
    override def prefix(input: Int, row: UnsafeRow): Long = {
      val whole = order.prefix(input, row)
      if (bits == 0) KeyOrder.NullPrefix else whole >> (64 - bits) << (64 - bits)
    }
    override def prefixIsKey: Boolean = bits == 64 && order.prefixIsKey
    override def mayHaveNull(prefix: Long): Boolean = order.mayHaveNull(prefix)
    override def compare(inputA: Int, a: UnsafeRow, inputB: Int, b: UnsafeRow): Int =
      order.compare(inputA, a, inputB, b)
  }

  /** Of inputs whose rows are one object each, as those of a scan are. */
  private def merged(inputs: Seq[Input], bits: Int, groupRows: Int): KeySortedGroups = {
    val key = Seq.fill(inputs.size)(Seq(BoundReference(0, IntegerType, nullable = true)))
    val order = new ShortPrefixes(KeyOrder(key), bits)
    val counts = new Array[Long](inputs.size)
    val sources: Array[RowCursor] = inputs.zipWithIndex.map { case (input, i) =>
      val rows = rowsOf(input.sortBy(_._1))
      new RowCursor.Ordered(i, rows, new UnsafeInputs(inputs.map(_ => types.toSeq)), order, counts)
    }.toArray
    val numFields = inputs.map(_ => 2).toArray
    new KeySortedGroups(
      keys(inputs.size),
      numFields,
      inputs.map(_ => false).toArray,
      groupRows,
      order,
      sources,
      needed = inputs.map(_ => false).toArray)
  }

  for ((name, inputs) <- samples) {
    test(s"$name: merged in order") {
      for (bits <- Seq(64, 62, 61, 32, 0); groupRows <- Seq(1, 3, 4096))
        withClue(s"prefixes of $bits bits, $groupRows rows a group: ") {
          TestTask.run(TestMemory.limited(Long.MaxValue)) { _ =>
            assert(combinations(merged(inputs, bits, groupRows)) === expected(inputs))
            val groups = merged(inputs, bits, groupRows)
            val keysInOrder = Iterator
              .continually(groups)
              .takeWhile(_.nextGroup())
              .map(_.rows.find(_ != null).get.getInt(0))
              .toSeq
            assert(keysInOrder === inputs.flatMap(_.map(_._1)).distinct.sorted)
          }
        }
    }
  }

  test("an input that is not in order is an error, not a wrong answer") {
    TestTask.run(TestMemory.limited(Long.MaxValue)) { _ =>
      val order = KeyOrder(Seq(Seq(BoundReference(0, IntegerType, nullable = true))))
      val source = new RowCursor.Ordered(
        0,
        rowsOf(Seq(1 -> "a", 3 -> "b", 2 -> "c")),
        new UnsafeInputs(Seq(types.toSeq)),
        order,
        new Array[Long](1))
      source.advance()
      assert(source.row.getInt(0) === 3)
      val error = intercept[IllegalStateException](source.advance())
      assert(error.getMessage.contains("Input 0 of the join is not in the order"))
    }
  }

  test("hashing, sorting, and going over are what the settings ask for") {
    val inputs = samples.toMap.apply("duplicates in all inputs")
    def kind(settings: GroupingSettings): Class[_] =
      TestTask.run(TestMemory.limited(Long.MaxValue)) { _ =>
        gather(inputs, settings).result().getClass
      }
    assert(kind(settings) === classOf[HashedGroups])
    assert(kind(settings.copy(maxRowsInMemory = 120)) === classOf[HashedGroups])
    assert(kind(settings.copy(maxRowsInMemory = 119)) === classOf[HashSortedGroups])
    assert(kind(settings.copy(sortAlways = true)) === classOf[HashSortedGroups])
  }

  test("a group may be left before its combinations are through") {
    val inputs = samples.toMap.apply("duplicates in all inputs")
    val keysOfAll = inputs.flatMap(_.map(_._1)).distinct.size
    val kinds: Seq[() => KeyGroups] =
      Seq(() => merged(inputs, 64, 2), () => merged(inputs, 0, 2)) ++
        (for (sort <- Seq(false, true); bits <- Seq(64, 1))
          yield () => gather(inputs, GroupingSettings(sort, Long.MaxValue, 2), bits).result())
    for (kind <- kinds; taken <- Seq(0, 1, 5)) {
      TestTask.run(TestMemory.limited(Long.MaxValue)) { _ =>
        val groups = kind()
        var count = 0
        while (groups.nextGroup()) {
          count += 1
          var more = true
          for (_ <- 0 until taken if more) more = groups.nextCombination()
        }
        assert(count === keysOfAll)
      }
    }
  }

  test("a task that ends early leaves no memory, whatever it was doing") {
    val inputs = samples.toMap.apply("a hot key in two inputs")
    for (sort <- Seq(false, true); rows <- Seq(1, 50, 120)) {
      TestTask.run(TestMemory.limited(Long.MaxValue)) { _ =>
        val groups = new SpillableGroups(
          keys(3),
          Array(2, 2, 2),
          Array.fill(3)(false),
          settings.copy(sortAlways = sort))
        rowsOf(inputs.head.take(rows)).foreach(groups.insert(0, 1L, _))
      }
      TestTask.run(TestMemory.limited(Long.MaxValue)) { _ =>
        val groups = gather(inputs, GroupingSettings(sort, Long.MaxValue, 1)).result()
        assert(groups.nextGroup())
        groups.nextCombination()
      }
    }
  }

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

  test("spill files that are read at a time are bounded") {
    // As read-ahead has a thread for each of them.
    def filesOpen = Thread.getAllStackTraces.keySet.asScala.count(_.getName == "read-ahead")
    val inputs: Seq[Input] =
      (0 until 4).map(i => (0 until 30000).map(r => (r * (i + 1)) -> s"$i.$r"))
    val before = filesOpen
    TestTask.run(TestMemory.limited(1400 * 1024L)) { _ =>
      val groups = gather(inputs, settings.copy(sortAlways = true), width = width).result()
      assert(groups.nextGroup())
      eventually(timeout(10.seconds)) {
        assert(filesOpen - before <= HashSortedGroups.MaxFiles + inputs.size)
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

  test("another task takes what was given up for sorting: rows go to files first") {
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
    for (found <- Seq(noTables, tooMany)) {
      assert(found.init === expected.init)
      assert(found.last > 0)
    }
  }

  test("hashes: equal keys have equal hashes, and few bits collide") {
    val wide = keys(2)
    val rows = rowsOf((0 until 1000).map(_ -> "")).map(_.copy()).toSeq
    assert(rows.map(wide.hash(0, _)) === rows.map(wide.hash(1, _)))
    assert(rows.map(wide.hash(0, _)).distinct.size === 1000)
    assert(rows.map(keys(2, hashBits = 2).hash(0, _)).distinct.size === 4)
    assert(rows.map(keys(2, hashBits = 0).hash(0, _)).distinct === Seq(0L))
    assert(wide.equal(0, rows(1), 1, rows(1)) && !wide.equal(0, rows(1), 1, rows(2)))
    val nullKey = UnsafeProjection.create(types)(InternalRow(null, null))
    assert(wide.hasNull(0, nullKey) && !wide.hasNull(0, rows.head))
  }
}
