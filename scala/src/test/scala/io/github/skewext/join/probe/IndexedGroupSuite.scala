package io.github.skewext.join.probe

import scala.collection.mutable
import scala.util.Random

import io.github.skewext.facts.EvaluatedInTurn
import io.github.skewext.join.range.RangeMatch
import io.github.skewext.rows.{GroupingSettings, GroupsTest, KillCheck, SpillableGroups}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.skewext.{TestConsumer, TestMemory, TestTask}
import org.apache.spark.sql.types.{DataType, IntegerType}

/** Groups that are searched by range after a spill, without a query: their tests and memory. */
class IndexedGroupSuite extends GroupsTest {

  /** A key, a value that may be null, and the number of the row. */
  private type Rows = Seq[(Int, Integer, Int)]

  private val sides =
    Seq.fill(2)(Seq("k", "t", "n").map(AttributeReference(_, IntegerType, nullable = true)()))
  private val Seq(Seq(_, at, an), Seq(_, bt, bn)) = sides

  private val band =
    And(GreaterThanOrEqual(at, bt), LessThan(at, Add(bt, Literal(3)))) -> (
      (a: Int, _: Int, b: Int, _: Int) => a >= b && a < b + 3)
  private val above = GreaterThan(at, bt) -> ((a: Int, _: Int, b: Int, _: Int) => a > b)
  private val below = And(LessThan(at, bt), Not(EqualTo(an, bn))) -> (
    (a: Int, n: Int, b: Int, m: Int) => a < b && n != m)

  private type Condition = (Expression, (Int, Int, Int, Int) => Boolean)

  private val joinTypes: Seq[JoinType] = Seq(
    Inner,
    LeftOuter,
    RightOuter,
    FullOuter,
    LeftSemi,
    LeftAnti,
    ExistenceJoin(AttributeReference("e", IntegerType)()))

  /** @param rows the numbers of both rows, and the flag of an existence join. */
  private case class Found(rows: Seq[(Any, Any, Any)], tests: Int, indexed: Long)

  /** @param memory that is free when the first group is opened. */
  private def joined(
      joinType: JoinType,
      condition: Condition,
      inputs: Seq[Rows],
      memory: Long = Long.MaxValue / 4,
      pageSize: Long = 1 << 16,
      hashBits: Int = 64,
      groupRows: Int = 1 << 20): Found = {
    val all = TestMemory.limited(Long.MaxValue / 2, pageSize)
    TestTask.run(all) { context =>
      val pair = new PairRows(null)
      var tests = 0
      val tested = EvaluatedInTurn.predicate(bound(condition._1), Nil)
      val counted = new BasePredicate {
        override def eval(row: InternalRow): Boolean = {
          tests += 1
          tested.eval(row)
        }
      }
      val kind = PairKind.of(joinType).get
      val groups = sorted(inputs, hashBits, groupRows).sortedResult()
      val other = new TestConsumer(context)
      all.limit(0)
      other.acquire(1L << 40)
      all.limit(memory)
      val range = RangeMatch.besideKeys(condition._1, sides.map(AttributeSet(_))).get.map(bound)
      val indexed = new IndexedGroup(groups, kind, counted, range, Array(3, 3), pair, context)
      val killed = new KillCheck(context)
      val pairs =
        new GroupedPairs(groups, kind, counted, Array(3, 3), pair, killed, Some(indexed))
      val rows = mutable.ArrayBuffer.empty[(Any, Any, Any)]
      while (pairs.advance()) {
        val Array(a, b) = pair.rows.map(row => if (row == null) null else row.getInt(2))
        rows += ((a, b, if (kind.flagged) pair.exists else null))
      }
      val found = Found(rows.toSeq, tests, pairs.close())
      other.release()
      found
    }
  }

  private def bound(e: Expression): Expression =
    PairColumn.in(BindReferences.bindReference(e, sides.flatten), 3)

  private def sorted(inputs: Seq[Rows], hashBits: Int, groupRows: Int): SpillableGroups = {
    val own = keys(2, hashBits)
    val settings = GroupingSettings(sortAlways = true, Long.MaxValue, groupRows)
    val groups = new SpillableGroups(own, Array(3, 3), Array(false, false), settings)
    val projection = UnsafeProjection.create(Array.fill[DataType](3)(IntegerType))
    for ((input, i) <- inputs.zipWithIndex) {
      input.foreach { case (k, t, n) =>
        val row = projection(InternalRow(k, t, n))
        groups.insert(i, own.hash(i, row), row)
      }
      groups.finishInput(i)
    }
    groups
  }

  /** The numbers of the rows of each pair that matches. */
  private def matches(condition: Condition, inputs: Seq[Rows]): Seq[(Int, Int)] = {
    val ofKey = inputs(1).groupBy(_._1).withDefaultValue(Nil)
    for ((k, a, n) <- inputs.head; (_, b, m) <- ofKey(k)
      if a != null && b != null && condition._2(a, n, b, m)) yield (n, m)
  }

  private def expected(
      joinType: JoinType,
      inputs: Seq[Rows],
      pairs: Seq[(Int, Int)]): Seq[(Any, Any, Any)] = {
    val Seq(left, right) = inputs.map(_.map(_._3))
    val matched = pairs.map(_._1).toSet
    val ofRight = pairs.map(_._2).toSet
    def alone(ns: Seq[Int]) = ns.map(n => (n, null, null))
    joinType match {
      case LeftSemi => alone(matched.toSeq)
      case LeftAnti => alone(left.filterNot(matched))
      case _: ExistenceJoin => left.map(n => (n, null, matched(n)))
      case _ =>
        val kind = PairKind.of(joinType).get
        pairs.map { case (n, m) => (n, m, null) } ++
          (if (kind.alone(0)) alone(left.filterNot(matched)) else Nil) ++
          (if (kind.alone(1)) right.filterNot(ofRight).map(m => (null, m, null)) else Nil)
    }
  }

  private def assertSame(found: Found, expected: Seq[(Any, Any, Any)]): Unit =
    assert(found.rows.map(_.toString).sorted === expected.map(_.toString).sorted)

  /** Rows of some keys; each has so many of them in a side. */
  private def rows(seed: Int, values: Int, ofKeys: Int*): Rows = {
    val random = new Random(seed)
    val keys = ofKeys.zipWithIndex.flatMap { case (count, k) => Seq.fill(count)(k) }
    random.shuffle(keys).zipWithIndex.map { case (k, n) =>
      val t: Integer = if (random.nextInt(20) == 0) null else random.nextInt(values)
      (k, t, n)
    }
  }

  test("all join types: few and many rows of a key, either side larger, equal hashes, spills") {
    val (a, b) = (rows(1, 60, 40, 3, 60, 0, 16, 15), rows(2, 60, 70, 50, 30, 7, 16, 15))
    // In turns, so that each join type has each of them.
    val ways = Iterator.continually(Seq(64 -> 1000, 0 -> 1000, 64 -> 2)).flatten
    for {
      condition <- Seq(band, above, below)
      inputs <- Seq(Seq(a, b), Seq(b, a))
      pairs = matches(condition, inputs)
      joinType <- joinTypes
    } withClue(s"$joinType, ${condition._1}: ") {
      val (hashBits, groupRows) = ways.next()
      val found = joined(joinType, condition, inputs, hashBits = hashBits, groupRows = groupRows)
      assert(found.indexed === 3)
      assertSame(found, expected(joinType, inputs, pairs))
    }
  }

  private val hot = Seq(rows(3, 10000, 3000), rows(4, 10000, 3000))
  private lazy val pairsOfHot = matches(band, hot)

  test("a key with many rows on both sides: candidates are tested, not all pairs") {
    for (joinType <- joinTypes) withClue(s"$joinType: ") {
      val found = joined(joinType, band, hot)
      assert(found.indexed === 1)
      assert(found.tests < 6000, "of 9,000,000 pairs")
      assertSame(found, expected(joinType, hot, pairsOfHot))
    }
  }

  test("without memory for rows, the index or operators above, all pairs are tested") {
    // Rows take 150 KB, and the index 270 KB while it is made. Of these it keeps 80 KB, and three pages
    // must be free. Both sorters hold a page until their next row, which is free then.
    for ((memory, page, indexed) <- Seq((0, 64, 0), (150, 64, 0), (250, 128, 0), (2000, 64, 1)))
      withClue(s"$memory KB: ") {
        val found = joined(FullOuter, band, hot, memory << 10, page << 10)
        assert(found.indexed === indexed)
        assert((found.tests == 9000000) === (indexed == 0))
        assertSame(found, expected(FullOuter, hot, pairsOfHot))
      }
  }

  test("the memory of a group is free for the next one") {
    val many = Seq.fill(20)(300)
    val inputs = Seq(rows(5, 2000, many: _*), rows(6, 2000, many: _*))
    val found = joined(Inner, band, inputs, memory = 100 << 10)
    assert(found.indexed === 20)
    assertSame(found, expected(Inner, inputs, matches(band, inputs)))
  }

  test("a task that ends in a group leaves no memory") {
    TestTask.run(TestMemory.limited(Long.MaxValue)) { context =>
      val pair = new PairRows(null)
      val kind = PairKind.of(Inner).get
      val groups = sorted(hot, 64, 100).sortedResult()
      val condition = EvaluatedInTurn.predicate(bound(band._1), Nil)
      val range = RangeMatch.besideKeys(band._1, sides.map(AttributeSet(_))).get.map(bound)
      val indexed = new IndexedGroup(groups, kind, condition, range, Array(3, 3), pair, context)
      context.addTaskCompletionListener[Unit] { _ =>
        indexed.close()
        ()
      }
      assert(groups.nextGroup() && indexed.open() && indexed.advance())
    }
  }
}
