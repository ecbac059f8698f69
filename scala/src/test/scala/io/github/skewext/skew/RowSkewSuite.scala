package io.github.skewext.skew

import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.SkewReason

import java.util.concurrent.FutureTask


import org.apache.spark.sql.functions._
import org.apache.spark.sql.{Column, DataFrame, SparkSession}

/** Skew that sizes do not show: equal keys without other columns are compressed to nearly nothing. */
class RowSkewSuite extends CompressedSkewTest {

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.conf.set(SkewConf.SKEW_OUTPUT_MODE.key, SkewConf.OutputSkew.All)
  }

  private val Rows = 24000

  /** Nothing but keys, half of them 3 or each another one. */
  private def keys(name: String, hot: Boolean = true, maps: Int = 8): DataFrame = {
    val one = col("id") * 7919 % 1000003
    spark
      .range(0, Rows, 1, maps)
      .select((if (hot) when(col("id") % 2 === 0, lit(3L)).otherwise(one) else one).as(name))
  }

  private def few(name: String): DataFrame =
    spark.range(0, 600).select((col("id") * 7919 * 20 % 1000003).as(name), col("id").as("v"))

  private def join(left: DataFrame, right: DataFrame, how: String, hint: String): DataFrame =
    left.join(right.hint(hint), col("l") === col("r"), how)

  test("keys of the right side of semi and anti joins", Slow) {
    val cases =
      for (how <- Seq("semi", "anti"); hint <- Seq("merge", "shuffle_hash")) yield (how, hint)
    for ((how, hint) <- covering(cases)) {
      withClue(s"$how $hint: ") {
        val df = join(few("l"), keys("r"), how, hint)
        val operator = checkSplit(df)
        val Seq(split) = operator.splits.partitions
        assert((split.slices, split.residual) === ((Nil, true)))
        assert(split.marking.size > 1)
        // Most of the rows are not read by the join; tasks before it have looked at them.
        assert(operator.metrics("numRowsOfInput1").value < Rows * 0.6)
        // What was read again is counted in bytes, and has few.
        assert(operator.metrics("rereadSize").value < 50000)
        withSQLConf(SkewConf.SKEW_OUTPUT_MODE.key -> SkewConf.OutputSkew.Off) {
          val unknown = again(df)
          checkWhole(unknown)
          assert(reasons(unknown) === Seq(SkewReason.NotSkewed))
        }
      }
    }
  }

  test("marking tasks of an RDD that a thread without a session uses") {
    val df = join(few("l"), keys("r"), "semi", "merge")
    assert(checkSplit(df).splits.partitions.exists(_.marking.nonEmpty))
    val counted = new FutureTask(() => {
      SparkSession.clearActiveSession()
      df.rdd.count()
    })
    new Thread(counted).start()
    assert(counted.get === df.count())
  }

  test("many rows without a hot key") {
    for (how <- Seq("semi", "anti")) {
      val df = join(few("l"), keys("r", hot = false), how, "merge")
      checkWhole(df)
      assert(reasons(df) === Seq(SkewReason.NotSkewed))
    }
  }

  test("either side of other joins, by whole blocks", Slow) {
    for ((how, hotLeft) <- Seq("inner" -> true, "full" -> true, "left" -> false)) {
      withClue(s"$how: ") {
        val (left, right) =
          if (hotLeft) (keys("l"), few("r").drop("v")) else (few("l").drop("v"), keys("r"))
        val df = join(left, right, how, "merge").groupBy().agg(count("*"), sum("l"), sum("r"))
        val Seq(split) = checkSplit(df).splits.partitions
        assert(split.input === (if (hotLeft) 0 else 1))
        assert(split.slices.size > 1 && split.slices.forall(_.shares == 1))
      }
    }
    val oneBlock = join(keys("l", maps = 1), few("r"), "full", "merge").groupBy().count()
    checkWhole(oneBlock)
    assert(reasons(oneBlock) === Seq(SkewReason.OneBlock))
  }

  test("an excluded input of the multi-way join") {
    val inputs = Seq(few("k"), keys("k"), few("k").withColumnRenamed("v", "w"))
    val split = checkSplit(
      multiJoin(inputs, Seq("k"), roles = Seq("required", "excluded", "optional"))).splits
    assert(split.residuals === 1 && split.pieces === 0)
  }

  test("rows of a hot key that compress much better than usual, without samples", Slow) {
    // As many compressed bytes of text, in memory 16 KB and 128 bytes.
    val unusual = repeat(sha2(col("id").cast("string"), 256), 256)
    val usual = sha2(col("id").cast("string"), 512)
    def full(text: Column, maps: Int) = {
      // The optimizer must not know the key, or it plans a join without keys.
      val hot = spark
        .range(0, 200, 1, maps)
        .select(when(col("id") < 200, 3L).otherwise(col("id")).as("l"), text.as("s"))
      join(hot, few("r"), "full", "merge")
    }
    withSQLConf(SkewConf.SKEW_OUTPUT_MODE.key -> SkewConf.OutputSkew.MultiJoin) {
      for (maps <- Seq(1, 8)) {
        val Seq(split) = checkSplit(full(unusual, maps)).splits.partitions
        assert(split.slices.size > 1 && split.residual)
        assert(split.slices.map(_.bytes).sum < 50000)
        val whole = full(usual, maps)
        checkWhole(whole)
        assert(reasons(whole) === Seq(SkewReason.NotSkewed))
      }
    }
  }
}
