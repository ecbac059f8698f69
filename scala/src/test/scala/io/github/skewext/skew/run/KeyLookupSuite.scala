package io.github.skewext.skew.run

import io.github.skewext.rows.NormalizedKeys
import io.github.skewext.shuffle.{BlocksOf, ShuffledColumns}
import org.apache.spark.sql.skewext.{TaskInternals, TestMemory, TestTask}

import scala.util.Random


import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.{DataType, IntegerType, LongType}

/** What of an excluded input gets through to a residual. */
class KeyLookupSuite extends SharedSparkSession {

  private val types: Array[DataType] = Array(LongType, IntegerType)

  private val keys = keysOf(hashBits = 64)

  private def keysOf(hashBits: Int) =
    NormalizedKeys(Seq.fill(2)(Seq(BoundReference(0, LongType, nullable = true))), hashBits)

  private def row(projection: UnsafeProjection)(key: Option[Long], v: Int): UnsafeRow =
    projection(InternalRow(key.map(Long.box).orNull, v))

  /** The values of the rows of `large` that get through, and how many rows of it were read. */
  private def through(
      memory: TestMemory,
      small: Seq[Option[Long]],
      large: Seq[Option[Long]]): (Seq[Int], Int) = TestTask.run(memory) { context =>
    val wanted = new KeyLookup(keys, context)
    val of = Seq.fill(2)(UnsafeProjection.create(types))
    small.foreach(k => wanted.add(0, row(of.head)(k, 0)))
    var read = 0
    val rows = large.iterator.zipWithIndex.map { case (k, v) =>
      read += 1
      row(of(1))(k, v)
    }
    (values(wanted.firstOfEach(1, rows)), read)
  }

  private def values(found: Iterator[InternalRow]): Seq[Int] =
    // hasNext may be asked as often as one likes.
    Iterator
      .continually(())
      .takeWhile(_ => found.hasNext && found.hasNext)
      .map(_ => found.next().getInt(1))
      .toList

  private def blocks(large: Seq[Option[Long]], ofBlock: Int): ShuffledColumns = {
    val rows = large.iterator.zipWithIndex.map { case (k, v) => Seq[Any](k.orNull, v) }
    BlocksOf(types.toSeq, rows, ofBlock)
  }

  private def plenty = TestMemory.limited(1 << 24)

  test("the first row of each wanted key, and no more once all are met") {
    val small = Seq(1, 2, 2, 3).map(k => Some(k.toLong)) :+ None
    val large = Seq(9, 2, 9, 2, 1, 3, 3, 9, 1).map(k => Some(k.toLong))
    assert(through(plenty, small, None +: large) === ((Seq(2, 5, 6), 7)))
    // A key that does not come: all is read.
    assert(through(plenty, small :+ Some(77L), large) === ((Seq(1, 4, 5), large.size)))
  }

  test("blocks of columns: the same rows get through, whatever is in a block") {
    val r = new Random(11)
    for (seed <- 0 until 60; ofBlock <- Seq(1, 3, 50)) withClue(s"$seed, $ofBlock: ") {
      // Every second key is hot, and some blocks have nulls.
      val large = Seq.fill(100)(
        if (r.nextInt(40) == 0) None
        else Some(if (r.nextBoolean()) 5L else r.nextInt(30).toLong))
      val small = Seq.fill(r.nextInt(20))(Some(r.nextInt(40).toLong))
      val memory = if (seed % 5 == 0) 0L else 1L << 24
      val byBlock = TestTask.run(TestMemory.limited(memory)) { context =>
        val wanted = new KeyLookup(keys, context)
        val of = UnsafeProjection.create(types)
        small.foreach(k => wanted.add(0, row(of)(k, 0)))
        values(wanted.firstOfEach(1, blocks(large, ofBlock)))
      }
      assert(byBlock === through(TestMemory.limited(memory), small, large)._1)
    }
  }

  test("the keys are given up within a block: all others get through") {
    val large = Seq(9L, 1L, 1L, 2L, 9L, 1L).map(Some(_))
    val read = TestTask.run(plenty) { context =>
      val wanted = new KeyLookup(keys, context)
      val of = UnsafeProjection.create(types)
      Seq(1L, 2L, 3L).foreach(k => wanted.add(0, row(of)(Some(k), 0)))
      val found = wanted.firstOfEach(1, blocks(large, 4))
      val before = found.next().getInt(1)
      wanted.giveUp()
      before +: values(found)
    }
    assert(read === Seq(1, 2, 3, 4, 5))
  }

  test("reads a slice until all keys are met, and not for keys that no slice has") {
    def read(small: Seq[Option[Long]]): Int = TestTask.run(plenty) { context =>
      val wanted = new KeyLookup(keys, context)
      val of = Seq.fill(2)(UnsafeProjection.create(types))
      small.foreach(k => wanted.add(0, row(of.head)(k, 0)))
      var read = 0
      val rows = Seq(9L, 1L, 2L, 9L, 9L).iterator.map { k =>
        read += 1
        row(of(1))(Some(k), 0)
      }
      assert(wanted.metBy(1, rows, Int.MaxValue).isDefined)
      read
    }
    assert(read(some(1, 2)) === 3)
    assert(read(some(7)) === 5)
    assert(read(Nil) === 0)
  }

  test("reads nothing for keys that no slice has") {
    assert(through(plenty, Nil, Seq(Some(1L))) === ((Nil, 0)))
    assert(through(plenty, Seq(None), Seq(None, Some(1L))) === ((Nil, 0)))
  }

  test("without memory for the keys all rows get through") {
    val large = Seq(Some(1L), Some(1L), None, Some(200L))
    for (bytes <- Seq(0L, 1L << 14, 1L << 17)) {
      val (values, read) = through(TestMemory.limited(bytes), (0L until 20000L).map(Some(_)), large)
      assert(values === large.indices)
      assert(read === large.size)
    }
  }

  test("the keys are given up while rows are compared to them: all others get through") {
    val read = TestTask.run(plenty) { context =>
      val wanted = new KeyLookup(keys, context)
      val of = Seq.fill(2)(UnsafeProjection.create(types))
      Seq(1L, 2L, 3L).foreach(k => wanted.add(0, row(of.head)(Some(k), 0)))
      val large =
        Seq(9L, 1L, 1L, 2L, 9L, 1L).map(Some(_)).iterator.zipWithIndex.map { case (k, v) =>
          row(of(1))(k, v)
        }
      val found = wanted.firstOfEach(1, large)
      val before = found.next().getInt(1)
      wanted.giveUp()
      before +: found.map(_.getInt(1)).toList
    }
    assert(read === Seq(1, 2, 3, 4, 5))
  }

  /** The keys of `small` that are in some slice, as each slice's task and the asking one see it. */
  private def known(
      small: Seq[Option[Long]],
      slices: Seq[Seq[Option[Long]]],
      hashBits: Int = 64,
      memory: => TestMemory = plenty,
      askedOf: Seq[Option[Long]] = Nil,
      maxKeys: Int = Int.MaxValue): Option[Seq[Long]] = {
    val of = Seq.fill(2)(UnsafeProjection.create(types))
    def set(keys: Seq[Option[Long]])(body: KeyLookup => Option[_]) = TestTask.run(memory) {
      context =>
        val wanted = new KeyLookup(keysOf(hashBits), context)
        keys.foreach(k => wanted.add(0, row(of.head)(k, 0)))
        body(wanted)
    }
    val sent = slices.map { slice =>
      def rows = slice.iterator.map(k => row(of(1))(k, 0))
      val byBlock = set(small)(_.metBy(1, blocks(slice, 2), maxKeys))
      // As tasks send it.
      val byRow = set(small)(_.metBy(1, rows, maxKeys))
      assert(byBlock === byRow)
      byRow match {
        case Some(met: MatchedKeys) => met.toLongs
        case _ => Array.emptyLongArray
      }
    }
    val together = MatchedKeys.ofAll(sent.iterator.map(MatchedKeys.row))
    val asking = if (askedOf.isEmpty) small else askedOf
    together.flatMap { met =>
      set(asking)(_.knownFrom(met).map { known =>
        asking.flatten.distinct.filter(k => known.contains(0, row(of.head)(Some(k), 0)))
      }).map { case keys: Seq[_] => keys.map { case k: Long => k } }
    }
  }

  test("all memory is free when the join has ended, and not only when the task has") {
    val of = UnsafeProjection.create(types)
    def used(context: TaskContext) = TaskInternals.memory(context).getMemoryConsumptionForThisTask
    def lookup(context: TaskContext): KeyLookup = {
      val wanted = new KeyLookup(keys, context)
      (0L until 100L).foreach(k => wanted.add(0, row(of)(Some(k), 0)))
      wanted
    }
    val met = TestTask.run(plenty) { context =>
      lookup(context).metBy(1, Iterator(row(of)(Some(5L), 0)), Int.MaxValue).get
    }
    TestTask.run(plenty) { context =>
      val wanted = lookup(context)
      assert(wanted.knownFrom(met).isDefined && used(context) === 800)
      wanted.close()
      assert(used(context) === 0)
    }
  }

  private def some(keys: Long*): Seq[Option[Long]] = keys.map(Some(_))

  test("slices combine their marks in any order of keys") {
    val small = None +: some(5, 1, 2, 2, 3, 4)
    val slices = Seq(some(1, 9, 9, 1), None +: some(4), Nil, some(1, 3, 8))
    assert(known(small, slices).map(_.toSet) === Some(Set(1L, 3L, 4L)))
    assert(known(small, slices, askedOf = small.reverse).map(_.toSet) === Some(Set(1L, 3L, 4L)))
    assert(known(small, Seq(some(9))) === Some(Nil))
    assert(known(Seq(None), Seq(some(9, 1)), askedOf = Seq(None)) === Some(Nil))
  }

  test("nothing is known of more keys than may be sent") {
    assert(known(some(1, 2, 3), Seq(some(1, 9)), maxKeys = 3) === Some(Seq(1L)))
    assert(known(some(1, 2, 3), Seq(some(1, 9)), maxKeys = 2) === None)
    assert(known(some(1, 2, 3), Nil) === None)
  }

  test("slices do not combine marks if their tasks had different keys") {
    def met(keys: Long*) = MatchedKeys(KeySetFingerprint.of(keys.toArray), new java.util.BitSet)
    assert(met(1, 2, 3).or(met(1, 2, 3)).isDefined)
    // Fewer; others; others with the same sum; others with the same xor.
    for (other <- Seq(met(1, 2), met(1, 2, 4), met(0, 2, 4), met(1, 4, 5))) {
      assert(met(1, 2, 3).or(other) === None)
    }
  }

  test("keys that cannot be distinguished are not marked") {
    val slices = Seq(some(1, 9), some(3))
    // Two bits of hash for nine keys; one key needs none.
    assert(known(some(1L to 9L: _*), slices, hashBits = 2) === None)
    assert(known(some(3), slices, hashBits = 0) === Some(Seq(3L)))
    // The asking task has other keys than those that looked for them.
    assert(known(some(1, 2, 3), slices, askedOf = some(1, 2)) === None)
    assert(known(some(1, 2, 3), slices, askedOf = some(1, 2, 4)) === None)
    assert(known(some(0L until 20000L: _*), slices, memory = TestMemory.limited(1 << 17)) === None)
    // There is room for the keys, but not for their hashes as well.
    val keys = some(0L until 4000L: _*)
    val granted = (15 to 22).map(b => known(keys, slices, memory = TestMemory.limited(1L << b)))
    assert(granted.head === None)
    assert(granted.last.map(_.toSet) === Some(Set(1L, 3L, 9L)))
    assert(granted.flatten.distinct.size === 1)
  }
}
