package io.github.skewext.join.range

import java.math.BigInteger

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

/** The sorted index and its keys, compared with all intervals one by one. */
class RangeIndexSuite extends AnyFunSuite {

  private def found(index: RangeIndex, lo: Long, hi: Long): Seq[Int] = {
    val until = index.until(hi)
    Iterator
      .iterate(index.next(0, until, lo))(i => index.next(i + 1, until, lo))
      .takeWhile(_ < until)
      .toList
  }

  private def check(lo: Array[Long], hi: Array[Long], asked: Seq[(Long, Long)]): Unit = {
    val sorted = RangeIndex.sorted(lo, hi, lo.length)
    assert(sorted.order.sorted === lo.indices)
    assert(sorted.los === lo.sorted)
    for ((from, to) <- asked) {
      val expected = lo.indices.filter(i => lo(i) <= to && hi(i) >= from)
      assert(found(sorted.index, from, to).map(sorted.order(_)).sorted === expected)
    }
  }

  test("finds the intervals that touch an interval, for each size of the tree") {
    val random = new Random(64)
    for (size <- (0 to 40) ++ Seq(64, 65, 255, 256, 257, 272, 273, 4095, 4096, 4097, 5000)) {
      val most = if (size % 3 == 0) 10 else 10 * size + 1
      val lo = Array.fill(size)(random.nextInt(most).toLong)
      // Some are reversed, and some are long.
      val hi = lo.map(l => l + random.nextInt(12) - 3 + (if (random.nextInt(50) == 0) most else 0))
      val asked = Seq.fill(if (size < 1000) 20 else 5) {
        val from = random.nextInt(most).toLong
        (from, from + random.nextInt(10) - 2)
      }
      check(lo, hi, asked :+ ((Long.MinValue, Long.MaxValue)) :+ ((Long.MaxValue, Long.MinValue)))
    }
  }

  test("finds intervals in one of several groups") {
    val random = new Random(65)
    for (size <- Seq(1, 50, 300, 5000)) {
      val groups = Array.fill(size)(Long.MaxValue * (random.nextInt(5) - 2))
      val lo = Array.fill(size)(random.nextInt(size).toLong)
      val hi = lo.map(_ + random.nextInt(12) - 3)
      val sorted = RangeIndex.sorted(lo, hi, size, groups)
      assert(sorted.order.map(groups(_)).toSeq === groups.sorted.toSeq)
      for (group <- groups.distinct; from <- Seq.fill(5)(random.nextInt(size).toLong)) {
        val start = sorted.order.indexWhere(groups(_) == group)
        val until =
          sorted.index.until(from + 6, start, start + groups.count(_ == group))
        val found = Iterator
          .iterate(sorted.index.next(start, until, from))(i =>
            sorted.index.next(i + 1, until, from))
          .takeWhile(_ < until)
          .map(sorted.order(_))
        val expected =
          lo.indices.filter(i => groups(i) == group && lo(i) <= from + 6 && hi(i) >= from)
        assert(found.toSeq.sorted === expected)
      }
    }
  }

  test("does not find intervals that were dropped, and looks at few of them") {
    val random = new Random(66)
    for (size <- Seq(1, 16, 17, 300, 5000)) {
      val lo = Array.fill(size)(random.nextInt(size).toLong)
      val hi = lo.map(_ + random.nextInt(12) - 3)
      val sorted = RangeIndex.sorted(lo, hi, size)
      val index = sorted.index
      val kept = (0 until size).filter { i =>
        val keeps = random.nextInt(3) == 0
        if (!keeps) index.drop(i)
        keeps
      }
      for (from <- Seq.fill(5)(random.nextInt(size).toLong)) {
        val expected = kept.map(i => i -> sorted.order(i)).collect {
          case (i, of) if lo(of) <= from + 6 && hi(of) >= from => i
        }
        assert(found(index, from, from + 6) === expected)
      }
    }
    // Without the tree, these are five billion steps.
    val size = 100000
    val all = Array.tabulate(size)(_.toLong)
    val index = RangeIndex.sorted(all, all, size).index
    for (i <- 0 until size) {
      assert(index.next(0, size, 0L) === i)
      index.drop(i)
    }
  }

  test("finds extreme and equal ends") {
    val ends = Array(Long.MinValue, -1L, 0L, 0L, 1L, Long.MaxValue, Long.MaxValue)
    check(ends, ends, for (from <- ends.toSeq; to <- ends.toSeq) yield (from, to))
    check(ends.map(_ => Long.MinValue), ends.map(_ => Long.MaxValue), Seq((5L, 3L)))
  }

  test("looks at few intervals if one covers all others") {
    val size = 100000
    val lo = Array.tabulate(size)(_.toLong)
    val hi = lo.clone()
    hi(0) = size
    val index = RangeIndex.sorted(lo, hi, size).index
    assert(found(index, size - 5, size - 5) === Seq(0, size - 5))
  }

  private def assertOrder[A](values: Seq[A])(key: A => Long): Unit =
    for (Seq(a, b) <- values.sliding(2)) assert(key(a) <= key(b), s"$a, $b")

  test("keys of floating-point numbers have Spark's order") {
    import Double._
    val values = Seq(
      NegativeInfinity,
      MinValue,
      -1.0,
      -MinPositiveValue,
      -0.0,
      0.0,
      MinPositiveValue,
      1.0,
      MaxValue,
      PositiveInfinity,
      NaN)
    assertOrder(values)(RangeKeys.ofDouble)
    assert(RangeKeys.ofDouble(-0.0) === RangeKeys.ofDouble(0.0))
    assert(values.map(RangeKeys.ofDouble).distinct.size === values.size - 1)
    val otherNaN = java.lang.Double.longBitsToDouble(0xfff8000000000001L)
    assert(RangeKeys.ofDouble(otherNaN) === RangeKeys.ofDouble(NaN))
  }

  test("keys of large integers have their order") {
    val random = new Random(5)
    val values = Seq.fill(2000)(new BigInteger(random.nextInt(250), random.self)) ++
      (0 to 200).flatMap { n =>
        val power = BigInteger.ONE.shiftLeft(n)
        Seq(power, power.subtract(BigInteger.ONE), power.add(BigInteger.ONE))
      }
    assertOrder((values ++ values.map(_.negate)).sorted)(RangeKeys.ofInteger)
    // Small ones have keys of their own.
    val small = (-2000L to 2000L).map(n => RangeKeys.ofInteger(BigInteger.valueOf(n)))
    assert(small.distinct.size === small.size)
  }

  test("keys of strings have the order of their bytes, after a common prefix") {
    val random = new Random(6)
    def bytes(n: Int) = Array.fill(n)((random.nextInt(4) * 85).toByte)
    val values = Seq.fill(500)(bytes(random.nextInt(14)))
    def unsigned(a: Array[Byte]) = a.map(_ & 0xff).toSeq
    import scala.math.Ordering.Implicits._
    val sorted = values.sortBy(unsigned)
    for (prefix <- Seq(Array.emptyByteArray, bytes(1), bytes(2), bytes(9))) {
      assertOrder(sorted)(RangeKeys.ofBytes(_, prefix))
    }
  }
}
