package io.github.skewext.shuffle

import io.github.skewext.shuffle.ColumnShuffleExchangeExec.fits

import org.apache.spark.SparkFunSuite

/** How many partitions and columns an exchange by column has at most. */
class ColumnShuffleLimitsSuite extends SparkFunSuite {

  test("16,384 runs: partitions times columns") {
    for {
      columns <- Seq(1, 2, 3, 100, 16384)
      most = 16384 / columns
    } {
      assert(fits(most, columns), columns)
      assert(!fits(most + 1, columns), columns)
    }
    assert(!fits(1, 16385))
    // Products that are no more than that if they overflow.
    assert(!fits(65536, 65536) && !fits(Int.MaxValue, 2) && !fits(1 << 30, 4))
  }

  test("the partitions that Spark's writer for blocks in order of partitions can have") {
    // Records of that writer have 24 bits for the partition.
    val most = 1 << 24
    assert(fits(most, 0) && !fits(most + 1, 0))
  }
}
