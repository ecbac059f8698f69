package io.github.skewext.skew.plan

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

class RowWeightsSuite extends AnyFunSuite {

  test("a partition weighs what as many rows of a usual one have") {
    val bytes = IndexedSeq(8000L, 8000L, 9000L, 8000L, 8000L)
    val rows = IndexedSeq(1000L, 1000L, 50000L, 1000L, 1000L)
    val weights = RowWeights.of(bytes, rows, every = 1)
    assert(weights === IndexedSeq(1.0, 1.0, 50000 * 8.0 / 9000, 1.0, 1.0))
    // Of a sample, what is beyond chance: three deviations of 50 are as many rows as 150 samples.
    val sampled = RowWeights.of(bytes, rows.map(n => if (n == 50000) 2500L else n / 20), every = 20)
    val expected = (2500 - 3 * math.sqrt(2500 * 0.95)) * 20 * 8 / 9000
    assert(math.abs(sampled(2) - expected) < 1e-9)
    assert(sampled.count(_ == 1.0) === 4)
  }

  test("larger rows than usual are what their bytes are, smaller ones weigh more") {
    val weights =
      RowWeights.of(IndexedSeq(80L, 8000L, 80L, 10L), IndexedSeq(10L, 10L, 10L, 10L), every = 1)
    assert(weights === IndexedSeq(1.0, 1.0, 1.0, 8.0))
  }

  test("partitions as large as others are not made heavier by chance") {
    val random = new Random(7)
    for (rowsEach <- Seq(20, 500, 50000); _ <- 1 to 20) {
      val bytes = IndexedSeq.fill(200)(rowsEach * 20L)
      val mean = rowsEach / 64.0
      // About what a sample of one row in 64 gives.
      val sampled = IndexedSeq.fill(200) {
        math.max(0L, math.round(mean + math.sqrt(mean) * random.nextGaussian()))
      }
      val weights = RowWeights.of(bytes, sampled, every = 64)
      if (weights.nonEmpty) assert(weights.max < 1.5, s"$rowsEach rows in each partition")
    }
  }

  test("nothing is known without counts, of other partitions, or where nothing was written") {
    assert(RowWeights.of(IndexedSeq(5L, 5L), IndexedSeq(0L, 0L), 1).isEmpty)
    assert(RowWeights.of(IndexedSeq(5L, 5L), IndexedSeq(1L), 1).isEmpty)
    assert(RowWeights.of(IndexedSeq(0L, 40L), IndexedSeq(3L, 4L), 1) === IndexedSeq(1.0, 1.0))
    // All rows are in one partition: there is no usual one.
    assert(
      RowWeights.of(IndexedSeq(0L, 40L, 0L), IndexedSeq(0L, 4000L, 0L), 1) ===
        IndexedSeq(1.0, 1.0, 1.0))
  }

  test("all partitions together weigh a tenth of their size in memory, if they are smaller") {
    val bytes = IndexedSeq(10L, 0L, 40L)
    def unpacked(inMemory: Double, weights: Double*) =
      RowWeights.unpacked(weights.toIndexedSeq, bytes, inMemory)
    assert(unpacked(1500) === IndexedSeq(3.0, 3.0, 3.0))
    assert(unpacked(500).isEmpty && unpacked(0).isEmpty)
    // What weighs more by its rows is a part of that.
    assert(unpacked(1800, 1, 1, 2) === IndexedSeq(2.0, 2.0, 4.0))
    assert(unpacked(900, 1, 1, 2) === IndexedSeq(1.0, 1.0, 2.0))
    assert(RowWeights.unpacked(IndexedSeq.empty, IndexedSeq(0L, 0L), 900).isEmpty)
  }
}
