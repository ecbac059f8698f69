package io.github.skewext.rows

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

class KeyFilterSuite extends AnyFunSuite {

  test("no key is missing, and few others are there") {
    val random = new Random(3)
    for ((rows, bytes) <- Seq((50, 1000L), (100000, 100000L * 25))) {
      val filter = KeyFilter.ofBytes(bytes)
      val hashes = Seq.fill(rows)(random.nextLong())
      hashes.foreach(filter.add)
      assert(hashes.forall(filter.mayHave))
      assert((0 until 10000).count(_ => filter.mayHave(random.nextLong())) < 3000)
    }
    // Of any size, and of hashes that differ in their first bits alone.
    val few = KeyFilter.ofBytes(Long.MaxValue)
    few.add(3L << 60)
    assert(few.mayHave(3L << 60) && !few.mayHave(5L << 60) && !KeyFilter.ofBytes(0).mayHave(0))
  }
}
