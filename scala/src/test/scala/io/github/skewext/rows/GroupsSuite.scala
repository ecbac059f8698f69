package io.github.skewext.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Coalesce, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.skewext.{TestMemory, TestTask}
import org.apache.spark.sql.types.IntegerType
import org.apache.spark.unsafe.types.UTF8String

/** The parts that bring rows together by key: what comes out. */
class GroupsSuite extends GroupsTest {

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
    test(
      s"$name: hashed, sorted, and gone over at every row",
      Slow(
        "a hot key in two inputs: hashed, sorted, and gone over at every row",
        "many inputs: hashed, sorted, and gone over at every row")) {
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
  private def merged(
      inputs: Seq[Input],
      bits: Int,
      groupRows: Int,
      needed: Set[Int] = Set.empty): KeySortedGroups = {
    val key = Seq.fill(inputs.size)(Seq(BoundReference(0, IntegerType, nullable = true)))
    val order = new ShortPrefixes(KeyOrder(key), bits)
    val sources: Array[RowCursor] = inputs.zipWithIndex.map { case (input, i) =>
      val rows = rowsOf(input.sortBy(_._1))
      new RowCursor.Ordered(i, rows, new UnsafeInputs(inputs.map(_ => types.toSeq)), order)
    }.toArray
    val numFields = inputs.map(_ => 2).toArray
    new KeySortedGroups(
      keys(inputs.size),
      numFields,
      inputs.map(_ => false).toArray,
      groupRows,
      order,
      sources,
      needed = inputs.indices.map(needed).toArray)
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

  test("a key that a needed input lacks is skipped, before its rows are copied") {
    val many = Seq.fill(5000)(7 -> "many")
    val inputs = Seq(Seq(3 -> "a", 9 -> "b"), many :+ (9 -> "c"), many :+ (9 -> "d"))
    for (needed <- Seq(Set.empty[Int], Set(0))) {
      TestTask.run(TestMemory.limited(Long.MaxValue)) { _ =>
        val groups = merged(inputs, 64, groupRows = 1, needed)
        var keys = Seq.empty[Int]
        while (groups.nextGroup()) keys :+= groups.rows.find(_ != null).get.getInt(0)
        assert(keys === (if (needed.isEmpty) Seq(3, 7, 9) else Seq(3, 9)))
        groups.free()
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
        order)
      source.advance()
      assert(source.row.getInt(0) === 3)
      val error = intercept[IllegalStateException](source.advance())
      assert(error.getMessage.contains("Input 0 of the join is not in the order"))
    }
  }

  test("the settings choose hashing, sorting, or a switch from one to the other") {
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

  test("keys in which nulls are equal: a null differs from 0 and from the empty string") {
    val columns = types.toSeq.zipWithIndex.map { case (t, i) =>
      BoundReference(i, t, nullable = true)
    }
    val computed = columns.map(c => Coalesce(Seq(c, c)))
    val rows =
      for (k <- Seq(null, 0, 1); v <- Seq(null, UTF8String.fromString("")))
        yield UnsafeProjection.create(types).apply(InternalRow(k, v)).copy()
    for (of <- Seq(columns, computed)) {
      val keys = JoinKeys(Seq(of, of), 64, nullsEqual = true)
      assert(rows.map(keys.hash(0, _)).distinct.size === rows.size)
      for ((a, i) <- rows.zipWithIndex; (b, j) <- rows.zipWithIndex)
        assert(keys.equal(0, a, 1, b) === (i == j) && !keys.hasNull(0, a))
    }
  }
}
