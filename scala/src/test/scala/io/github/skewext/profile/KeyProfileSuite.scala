package io.github.skewext.profile

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.types.{DataType, IntegerType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String

class KeyProfileSuite extends AnyFunSuite {

  private val Partitions = 7

  private def profile(
      keys: Seq[Any],
      keyType: DataType = LongType,
      sketchSize: Int = 1024,
      asked: Seq[ReportedKey] = Nil,
      withBytes: Boolean = false): KeyProfile = KeyProfiling(
    Seq(BoundReference(0, keyType, nullable = true)),
    if (withBytes) Some(Seq(keyType)) else None,
    Partitions,
    sketchSize,
    asked.toArray).profile(keys.iterator.map(InternalRow(_)))

  private def merged(parts: Seq[KeyProfile]): KeyProfile =
    KeyProfile.fromBytes(parts.map(_.toBytes).fold(Array.emptyByteArray)(KeyProfile.merge))

  private def value(key: ReportedKey): Long = key.row(1).getLong(0)

  test("a share needs a sketch of so many keys") {
    assert(KeyProfile.sketchSize(0.1) === 1024)
    assert(KeyProfile.sketchSize(0.001) === 4096)
    assert(KeyProfile.sketchSize(0.00001) === 524288)
  }

  test("few keys are counted exactly, in one part or in many") {
    val keys = Seq.tabulate(5000)(i => math.min(i % 40, 9).toLong)
    val expected = keys.groupBy(identity).map { case (k, rows) => k -> rows.size.toLong }
    Seq(profile(keys), merged(keys.grouped(700).map(profile(_)).toSeq)).foreach { p =>
      assert(p.keys.getMaximumError === 0)
      val found = p.frequent(0).map(k => value(k) -> p.bounds(k)).toMap
      assert(found === expected.map { case (k, n) => k -> ((n, n)) })
      assert(p.numRows === 5000)
      assert(p.distinct.getLowerBound(2) <= 10 && p.distinct.getUpperBound(2) >= 10)
    }
  }

  test("among very many keys, bounds hold and frequent ones are found") {
    val random = new Random(5)
    // Of 60,000 rows a tenth have key 1, a hundredth key 2; 3 has no more than others.
    val keys = Seq.fill(60000)(random.nextInt(100) match {
      case n if n < 10 => 1L
      case 10 => 2L
      case _ => 3L + random.nextInt(30000)
    })
    val count = keys.groupBy(identity).map { case (k, rows) => k -> rows.size.toLong }
    val p = merged(keys.grouped(9000).map(profile(_)).toSeq)
    assert(p.keys.getMaximumError > 0)
    assert(p.keys.getMaximumError <= 60000 * 3.5 / 1024)
    val found = p.frequent(300)
    assert(found.map(value).take(2) === Seq(1L, 2L))
    p.frequent(0).foreach { key =>
      val (low, high) = p.bounds(key)
      assert(low <= count(value(key)) && count(value(key)) <= high)
    }
    val distinct = count.size.toDouble
    assert(p.distinct.getLowerBound(3) <= distinct && distinct <= p.distinct.getUpperBound(3))
  }

  test("partitions are those of Spark's hash, and rows with a null are apart") {
    val keys = Seq[Any](1L, 2L, null, 1L, null)
    val p = profile(keys, withBytes = true)
    assert(p.rows.sum === 3)
    assert(p.nullRows.sum === 2)
    // The hash of a null is the seed.
    assert(p.nullRows(42 % Partitions) === 2)
    val size = UnsafeProjection.create(Array[DataType](LongType))(InternalRow(1L)).getSizeInBytes
    assert(p.bytes.sum === 5 * (size + 4))
    val one = p.frequent(1).head
    assert(value(one) === 1L)
    assert(p.rows(one.partition(Partitions)) >= 2)
  }

  test("counts requested keys even if they are rare") {
    val asked = profile(Seq(77L, 78L, 79L)).frequent(0)
    val keys = Seq.tabulate(20000)(_.toLong) ++ Seq(78L, 78L)
    val p = merged(keys.grouped(6000).map(profile(_, asked = asked)).toSeq)
    assert(
      asked.zip(p.asked).map { case (k, n) => value(k) -> n }.toMap ===
        Map(77L -> 1L, 78L -> 3L, 79L -> 1L))
  }

  test("a key that is too large is counted but not kept") {
    val large = UTF8String.fromString("x" * 5000)
    val p = profile(Seq(large, UTF8String.fromString("y"), large), StringType)
    assert(p.untracked === 2)
    assert(p.rows.sum === 3)
    assert(p.frequent(0).size === 1)
    assert(merged(Seq(p, profile(Seq(large), StringType))).untracked === 3)
  }

  test("no rows") {
    assert(merged(Seq(profile(Nil), profile(Nil))).numRows === 0)
    assert(KeyProfile.merge(Array.emptyByteArray, Array.emptyByteArray).isEmpty)
    val p = merged(Seq(profile(Nil), profile(Seq(1L))))
    assert(p.frequent(0).map(value) === Seq(1L))
    assert(profile(Seq(1, 2), IntegerType).numRows === 2)
  }
}
