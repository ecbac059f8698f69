package io.github.skewext.skew.run

import io.github.skewext.skew.plan.SketchLayout
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** What one map task counts, without Spark. */
class KeySamplerSuite extends AnyFunSuite {

  private val types = Seq(LongType, StringType, StructType.fromDDL("a INT, b STRING"))

  private def row(n: Int): InternalRow = {
    val text = if (n % 5 == 0) null else UTF8String.fromString(s"key $n")
    InternalRow(n.toLong, text, InternalRow(n, text))
  }

  test("a sampled row is counted in the partition that the shuffle sends it to") {
    val layout = SketchLayout(7, 4)
    for (ordinals <- Seq(Seq(0), Seq(1), Seq(2), Seq(0, 1), Seq(1, 2))) {
      val keys = ordinals.map(i => BoundReference(i, types(i), nullable = true))
      val partition = UnsafeProjection.create(Seq(HashPartitioning(keys, 7).partitionIdExpression))
      for (n <- 0 until 50) {
        val sampler = new KeySampler(keys, Some(layout), every = 1, mapTask = 3)
        assert(sampler.sample(row(n)) === 1)
        val sums = new Array[Int](layout.size)
        sampler.result.addTo(sums)
        val expected =
          if (ordinals.contains(1) && n % 5 == 0) Nil
          else Seq(0, 1).map(table => layout.firstCell(table, partition(row(n)).getInt(0)))
        val counted = sums.indices.filter(sums(_) > 0)
        assert(counted.map(cell => cell - cell % layout.width) === expected)
      }
    }
  }

  test("a task that samples no row makes no counters") {
    // So many that there is no array of them.
    val layout = SketchLayout(1 << 22, 256)
    assert(layout.size < 0)
    val key = BoundReference(0, LongType, nullable = false)
    assert(new KeySampler(Seq(key), Some(layout), every = 64, mapTask = 0).result.size === 0)
  }
}
