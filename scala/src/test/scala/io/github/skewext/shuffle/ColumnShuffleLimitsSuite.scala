package io.github.skewext.shuffle

import java.nio.ByteOrder.{BIG_ENDIAN, LITTLE_ENDIAN}

import io.github.skewext.shuffle.ColumnShuffleExchangeExec.limit

import org.apache.spark.SparkFunSuite

/** Limits of an exchange by column, each with a reason of its own. */
class ColumnShuffleLimitsSuite extends SparkFunSuite {

  private def fits(partitions: Int, columns: Int): Boolean = {
    val found = limit(partitions, columns, LITTLE_ENDIAN)
    assert(found.forall(_.reason === RowShuffleReason.ManyRuns))
    found.isEmpty
  }

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
    assert(
      limit(8193, 2, LITTLE_ENDIAN).map(_.text) ===
        Some("columns times partitions exceed 16,384 (2 columns, 8193 partitions)"))
  }

  test("an exchange without columns has partitions for which Spark's writer has bits") {
    assert(fits(16384, 0) && !fits(16385, 0))
  }

  test("a big-endian processor is named as the reason") {
    assert(limit(200, 3, BIG_ENDIAN).map(_.reason) === Some(RowShuffleReason.BigEndian))
    assert(limit(200, 3, LITTLE_ENDIAN).isEmpty)
  }
}
