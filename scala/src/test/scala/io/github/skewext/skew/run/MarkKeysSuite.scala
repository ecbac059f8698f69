package io.github.skewext.skew.run

import io.github.skewext.skew.SkewTest


import org.apache.spark.SparkConf
import org.apache.spark.sql.functions._

/** What the tasks of a stage before a split join send to its residuals. */
class MarkKeysSuite extends SkewTest {

  override protected def sparkConf: SparkConf = super.sparkConf
    .set("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .set("spark.kryo.registrationRequired", "true")

  test("Kryo without registered classes: semi and anti joins, pieces and residuals", Slow) {
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
}
