package io.github.skewext.bucket

import io.github.skewext.bucket.BucketCounts.Input
import org.scalatest.funsuite.AnyFunSuite

/** In how many partitions tables with different numbers of buckets are joined. */
class BucketCountsSuite extends AnyFunSuite {

  private def table(count: Int, size: Int = 100): Input =
    Input(Some(count), divides = true, canForget = true, isDone = false, size)

  private def fixed(count: Int, size: Int = 100): Input =
    Input(Some(count), divides = false, canForget = false, isDone = false, size)

  private val unbucketed = Input(None, divides = false, canForget = false, isDone = false, 100)

  private def choose(inputs: Input*)(ratio: Int = 8, cores: Int = 4): Option[Int] =
    BucketCounts.choose(inputs, ratio, cores)

  test("counts that divide each other") {
    assert(choose(table(8), table(16), table(64))() === Some(8))
    assert(choose(table(16), table(64))() === Some(16))
    assert(choose(table(8), table(16), table(64), unbucketed)() === Some(8))
    // Nothing to do.
    assert(choose(table(8), table(8))() === None)
    assert(choose(table(8), unbucketed)() === None)
    assert(choose(unbucketed, unbucketed)() === None)
  }

  test("not by more than the ratio") {
    // The smallest is shuffled.
    assert(choose(table(8), table(16), table(64))(ratio = 4) === Some(16))
    assert(choose(table(8), table(64))(ratio = 4) === None)
    assert(choose(table(8), table(64))(ratio = 8) === Some(8))
  }

  test("counts that do not divide: the smaller tables are shuffled") {
    assert(choose(table(6), table(8))() === None)
    assert(choose(table(6, 10), table(8), table(16))() === Some(8))
    assert(choose(table(6, 1000), table(8), table(16))() === None)
    assert(choose(table(6, 1000), table(8), table(12))() === Some(6))
  }

  test("fewer partitions than cores are weighed against the shuffle") {
    assert(choose(table(8), table(64))(cores = 8) === Some(8))
    assert(choose(table(8), table(64))(cores = 16) === Some(8))
    assert(choose(table(8), table(64))(cores = 64) === None)
    assert(choose(table(8, 1), table(64, 1000))(cores = 16) === None)
    assert(choose(table(8, 1), table(64, 1000))(cores = 8) === Some(8))
  }

  test("what has its partitions, and keeps them") {
    assert(choose(fixed(8), table(16))() === Some(8))
    assert(choose(table(8), fixed(16))() === None)
    // Spark takes the larger number where neither is shuffled, so 8 cannot be had.
    assert(choose(table(8, 1000), table(16, 1000), fixed(12))() === None)
    // A shuffle that has been done is not done again, whatever it would save.
    val done = fixed(16, 1).copy(isDone = true)
    assert(choose(done, table(64, 1000))(cores = 1000) === Some(16))
    assert(choose(done, table(24, 1000), table(32, 1))() === Some(16))
    assert(choose(done, table(24, 1000))() === Some(16))
  }
}
