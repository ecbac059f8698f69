package io.github.skewext.execution.split

import io.github.skewext.execution.split.MarkKeys.Part
import io.github.skewext.skew.SkewTest

import org.apache.spark.SparkConf
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec}
import org.apache.spark.sql.functions._

/** What tasks before a split join send to the driver. */
class MarkKeysSuite extends SkewTest {

  override protected def sparkConf: SparkConf = super.sparkConf
    .set("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .set("spark.kryo.registrationRequired", "true")

  test("Kryo with classes that nobody has registered: semi and anti joins, pieces and residuals") {
    val large = skewed(1, 3000, hot = 3, maps = 12).withColumnRenamed("k", "r")
    val few = skewed(0, 40, keys = 9).withColumnRenamed("k", "l")
    for (how <- Seq("left_semi", "left_anti")) {
      val join = checkSplit(few.join(large.hint("merge"), col("l") === col("r"), how))
      assert(join.splits.markingTasks > 1)
      // Whole partitions alone are read by the join: keys were marked.
      assert(join.metrics("numRowsOfInput1").value < 750)
    }
    val full = checkSplit(fullJoin("k")(skewed(0, 20), skewed(1, 3000, hot = 3, maps = 12)))
    assert(full.splits.pieces > 1 && full.splits.markingTasks > 1)
  }

  test("no more tasks than may send a bit for each key, by the sizes of inputs") {
    def parts(partition: Int, bytes: Long): Seq[Part] = (0 until 3).map { m =>
      val slice = PartialReducerPartitionSpec(partition, m, m + 1, 1L << 30)
      val others = CoalescedPartitionSpec(partition, partition + 1, bytes)
      Part(partition, input = 1, wantedOf = Seq(0), Seq(others, slice))
    }
    // Rows of four bytes at least: 1,000 and 100 bytes for each task.
    val all = (parts(0, 32000) ++ parts(1, 3200)).toIndexedSeq
    def partitions(maxBytes: Long) = MarkKeys.within(maxBytes, all).map(_.partition).distinct
    assert(partitions(3300) === Seq(0, 1))
    assert(partitions(3299) === Seq(1))
    assert(partitions(299) === Nil)
    assert(MarkKeys.within(300, all).size === 3)
  }
}
