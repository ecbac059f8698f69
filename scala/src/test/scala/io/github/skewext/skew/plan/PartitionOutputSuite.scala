package io.github.skewext.skew.plan

import io.github.skewext.skew.run.KeyCounts

import scala.util.Random

import org.scalacheck.Gen
import org.scalacheck.rng.Seed
import org.scalatest.funsuite.AnyFunSuite

/** Counting keys and what is concluded from it, without Spark. */
class PartitionOutputSuite extends AnyFunSuite {

  private val every = 32

  /** The sketch of rows with these keys' hashes and how often each occurs. */
  private def sketch(seed: Int, layout: SketchLayout, keys: Seq[(Int, Int)]): KeySketch = {
    val random = new Random(seed)
    val counts = new Array[Int](layout.size)
    for ((hash, rows) <- keys; _ <- 0 until rows if random.nextInt(every) == 0;
      table <- 0 until SketchLayout.Tables) {
      counts(layout.cell(table, hash)) += 1
    }
    KeySketch(layout, every, counts)
  }

  /** As Spark hashes numbers one after the other: to anywhere. */
  private def hash(key: Int): Int = scala.util.hashing.MurmurHash3.mix(7, key)

  private def cold(from: Int, keys: Int, rows: Int = 1): Seq[(Int, Int)] =
    (from until from + keys).map(k => (hash(k), rows))

  private val layout = SketchLayout(20, 128)

  test("a key is counted in the partition that Spark sends it to") {
    for (layout <- Seq(layout, SketchLayout(200, 128), SketchLayout(7, 4)); k <- 0 until 2000) {
      val partition = Math.floorMod(hash(k), layout.partitions)
      for (table <- 0 until SketchLayout.Tables) {
        val cell = layout.cell(table, hash(k)) - layout.firstCell(table, partition)
        assert(cell >= 0 && cell < layout.width)
      }
    }
    assert(layout.firstCell(SketchLayout.Tables - 1, 19) + layout.width === layout.size)
  }

  test("two keys of one cell are hardly ever together in the other table") {
    def cells(k: Int) = (0 until SketchLayout.Tables).map(layout.cell(_, hash(k)))
    val all = (0 until 4000).map(cells)
    assert(all.map(_.head).distinct.size < 2560)
    assert(all.distinct.size > 3950)
    // All cells are used.
    assert(all.map(_.head).distinct.size > 1500 && all.map(_.last).distinct.size > 1500)
  }

  test("a wide sketch, folded, is a narrow one") {
    val keys = (0 until 3000).map(k => (hash(k), 1 + k % 90))
    val wide = sketch(1, layout, keys)
    val narrow = sketch(1, layout.copy(width = 16), keys)
    for (p <- 0 until 20; table <- 0 until SketchLayout.Tables) {
      assert(wide.cells(table, p, 16).toSeq === narrow.cells(table, p, 16).toSeq)
    }
  }

  test("limits: memory of a task, what the driver is sent, too few cells") {
    assert(SketchLayout.of(1, 1).map(_.width) === Some(256))
    assert(SketchLayout.of(200, 100).map(_.width) === Some(128))
    assert(SketchLayout.of(200, 20000).map(_.width) === Some(16))
    assert(SketchLayout.of(2000, 1000).map(_.width) === Some(16))
    assert(SketchLayout.of(10000, 10) === None)
    assert(SketchLayout.of(200, 1000000) === None)
    for (partitions <- Seq(1, 3, 200, 4000); tasks <- Seq(0, 1, 1000, 30000)) {
      SketchLayout.of(partitions, tasks).foreach { l =>
        assert(l.size <= (1 << 16) && l.size.toLong * tasks <= (1L << 27))
        assert(Integer.bitCount(l.width) === 1)
      }
    }
  }

  test("counts survive serialization") {
    val arrays = Gen.listOf(
      Gen.frequency(
        5 -> Gen.const(0),
        3 -> Gen.choose(1, 200),
        1 -> Gen.oneOf(127, 128, 16383, 16384, Int.MaxValue / 2)))
    for (seed <- 0 until 200) {
      val counts = arrays.pureApply(Gen.Parameters.default, Seed(seed)).toArray
      val sums = Array.fill(counts.length)(seed)
      KeyCounts.OfTask(3, counts).addTo(sums)
      assert(sums.toSeq === counts.toSeq.map(_ + seed))
    }
    assert(KeyCounts.OfTask(0, new Array[Int](60000)).size === 0)
  }

  test("a counter takes a byte at most, however full the table is") {
    val cells = 1 << 16
    for (every <- Seq(1, 2, 3, 7, 1000); count <- Seq(1, 100, 127)) {
      val counts = Array.tabulate(cells)(cell => if (cell % every == 0) count else 0)
      assert(KeyCounts.OfTask(0, counts).size <= cells)
    }
    assert(KeyCounts.OfTask(0, Array.tabulate(cells)(_ % 2)).size === cells)
  }

  test("a map task that ran twice counts once") {
    val small = SketchLayout(2, 4)
    def ofTask(mapTask: Int, count: Int): KeyCounts = {
      val counts = new KeyCounts(small)
      counts.add(KeyCounts.OfTask(mapTask, Array.fill(small.size)(count)))
      counts
    }
    val sums = new KeyCounts(small)
    assert(sums.isZero && new KeyCounts(small).copyAndReset().isZero)
    Seq(ofTask(0, 1), ofTask(5, 10), ofTask(0, 1), ofTask(5, 10), ofTask(64, 100)).foreach { task =>
      assert(!task.isZero)
      sums.merge(task)
      // Listeners keep the other one for some time.
      assert(task.isZero)
    }
    assert(sums.value.toSeq === Seq.fill(small.size)(111))
    // What is sent to a task has nothing in it.
    assert(!sums.isZero && sums.copyAndReset().isZero && !sums.copy().isZero)
  }

  private def estimate(inputs: Seq[(Int, Int)]*): IndexedSeq[PartitionOutput] =
    PartitionOutput.of(
      inputs.zipWithIndex.map { case (keys, i) => Some(sketch(i, layout, keys)) },
      rowBytes = 1)

  test("a key with many rows in two inputs, among a million others") {
    val hot = (hash(-1), 3000)
    val p = Math.floorMod(hot._1, 20)
    val output = estimate(cold(0, 500000) :+ hot, cold(250000, 500000) :+ hot)
    assert(output.map(_.bytes > 0) === (0 until 20).map(_ == p))
    assert(output(p).bytes > 5e6 && output(p).bytes < 14e6)
    assert(output(p).byInput === Seq(output(p).bytes, output(p).bytes))
    assert(output(p).hotRows.forall(n => n > 2000 && n < 4000))
    // In a third input that has it once, there is nothing to be seen of it.
    val third =
      estimate(cold(0, 100000) :+ hot, cold(9, 50000) :+ (hash(-1) -> 1), cold(7, 90000) :+ hot)(p)
    assert(third.byInput(1) === 0.0)
    assert(third.bytes > 5e6 && third.bytes < 14e6)
  }

  test("nothing comes of a key that is hot in one input only, or of keys that are all alike") {
    assert(estimate(cold(0, 100000) :+ (hash(-1) -> 500000), cold(0, 100000)).forall(_.bytes == 0))
    assert(estimate(cold(0, 200000), cold(0, 200000)).forall(_.bytes == 0))
    // Many to many, but as much everywhere.
    assert(estimate(cold(0, 20000, 50), cold(0, 20000, 50)).forall(_.bytes == 0))
    // Two hot keys, each in one input, which share a cell of one table.
    for (table <- 0 until SketchLayout.Tables) {
      def cells(key: Int) = (0 until SketchLayout.Tables).map(layout.cell(_, hash(key)))
      val other = Iterator
        .from(2)
        .map(-_)
        .find(k => cells(k)(table) == cells(-1)(table) && cells(k) != cells(-1))
        .get
      val apart =
        estimate(cold(0, 100000) :+ (hash(-1) -> 30000), cold(0, 100000) :+ (hash(other) -> 30000))
      assert(apart.forall(_.bytes == 0))
    }
  }

  test("inputs without statistics") {
    val known = Some(sketch(0, layout, cold(0, 10) :+ (hash(-1) -> 9000)))
    assert(PartitionOutput.of(Seq(known, None), 1).isEmpty)
    assert(PartitionOutput.of(Nil, 1).isEmpty)
    assert(PartitionOutput.of(Seq(known, None, known), 1).map(_.bytes).max > 5e7)
    val others = Some(sketch(0, layout.copy(partitions = 10), cold(0, 10)))
    assert(PartitionOutput.of(Seq(known, others), 1).isEmpty)
    // Of another width, as there are more map tasks.
    val narrow = Some(sketch(0, layout.copy(width = 8), cold(0, 10) :+ (hash(-1) -> 9000)))
    assert(PartitionOutput.of(Seq(known, narrow), 1).map(_.bytes).max > 5e7)
  }
}
