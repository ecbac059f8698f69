package io.github.skewext.technique

import io.github.skewext.platform.{Guard, SkewConf}


import org.apache.spark.sql.functions._
import org.apache.spark.sql.{AnalysisException, DataFrame}

/** Which technique `auto` chooses, and why. */
class AutoTechniqueSuite extends SkewJoinTest {

  test("auto broadcasts small sides, else relies on splits, and gives the reason", Slow) {
    def how(df: DataFrame) = explained(df).map(_.origin.text).distinct.mkString("\n")
    val split = check(large, small, "k", "full", "auto")
    assert(made(split) === Seq("adaptive"))
    assert(splitJoins(split).size === 1)
    assert(how(split).contains("chosen as partitions are split"), how(split))
    withSQLConf(BroadcastBelow -> small.queryExecution.optimizedPlan.stats.sizeInBytes.toString) {
      val full = check(large, small, "k", "full", "auto")
      assert(made(full).toSet === Set("broadcast_map"))
      assert(how(full).contains("smaller than spark.sql.autoBroadcastJoinThreshold"), how(full))
      assert(made(check(large, small, "k", "left", "auto")) === Seq("broadcast"))
      assert(made(check(small, large, "k", "left", "auto")).toSet === Set("broadcast_map"))
      // Where either side would do, the one that Spark can broadcast.
      withSQLConf(BroadcastBelow -> "1g") {
        assert(made(skewJoin(small, large, "k", "left", "auto")) === Seq("broadcast"))
      }
      // What cannot be read twice is not, and what would take long is not.
      val grouped = large.groupBy("k").agg(max("v0").as("v0"))
      assert(made(skewJoin(grouped, small, "k", "full", "auto")) === Seq("adaptive"))
      assert(
        made(skewJoin(small, grouped, "k", "left_anti", "auto")).toSet === Set("broadcast_map"))
      val unstable = large.where(rand(1) < 0.5)
      assert(made(skewJoin(unstable, small, "k", "full", "auto")) === Seq("adaptive"))
    }
  }

  test("auto goes by what sides take in memory, and not by their files") {
    withTempPath { path =>
      def stored(rows: Int, as: String): DataFrame = {
        spark.range(0, rows, 1, 1).selectExpr("id AS k", s"id AS $as").write.parquet(s"$path/$as")
        spark.read.parquet(s"$path/$as")
      }
      val (left, right) = (stored(40000, "a"), stored(600, "b"))
      val size = right.queryExecution.optimizedPlan.stats.sizeInBytes.toLong
      def auto(l: DataFrame, r: DataFrame, how: String, threshold: Long): Seq[String] = {
        var techniques: Seq[String] = Nil
        withSQLConf(BroadcastBelow -> threshold.toString) {
          techniques = made(skewJoin(l, r, "k", how, "auto")).distinct
        }
        techniques
      }
      // What Spark would broadcast as well.
      assert(auto(left, right, "left", size) === Seq("broadcast"))
      assert(auto(left, right, "left", size - 1) === Seq("adaptive"))
      // Where it would not, the table may be much larger than its file.
      assert(auto(left, right, "full", size) === Seq("adaptive"))
      assert(auto(left, right, "full", size * 10) === Seq("broadcast_map"))
      val rows = small.queryExecution.optimizedPlan.stats.sizeInBytes.toLong
      assert(auto(large, small, "left", rows / 2) === Seq("broadcast"))
      assert(auto(large, small, "left", rows / 10) === Seq("adaptive"))
      // Nobody knows how large this side is.
      val exploded = right.withColumn("c", explode(array_repeat(lit(1), 1000)))
      assert(auto(left, exploded, "full", size * 100) === Seq("adaptive"))
    }
  }

  test("limits stop a named technique, and not the choice of auto") {
    val unknown = small.localCheckpoint()
    val exploded = small.withColumn("c", explode(array_repeat(lit(1L), 100)))
    withSQLConf(BroadcastBelow -> "10m", SkewConf.SKEW_JOIN_MAX_BROADCAST.key -> "20k") {
      for (side <- Seq(unknown, exploded)) {
        val df = check(large, side, "k", "left", "auto")
        assert(made(df).nonEmpty)
      }
      assert(made(skewJoin(large, exploded, "k", "left", "auto")) === Seq("broadcast"))
      val named = skewJoin(large, exploded, "k", "left", "broadcast")
      assert(intercept[AnalysisException](named.collect()).getMessage.contains("has built"))
    }
  }

  test("auto looks at some rows where partitions are not split at run time", Slow) {
    def how(df: DataFrame) = explained(df).map(_.origin.text).distinct.mkString("\n")
    val sample = SkewConf.SKEW_JOIN_SAMPLE_ROWS.key
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      for (rows <- Seq("100000", "200")) withSQLConf(sample -> rows) {
        val df = check(large, small, "k", "full", "auto")
        assert(made(df) === Seq("salted"))
        assert(how(df).contains("chosen as hot keys are found in a sample of the rows"), how(df))
        // However few rows were looked at: 364 of 763 rows with a key.
        val share = "1 hot key, the most frequent with (\\d+) %".r.findFirstMatchIn(how(df))
        assert(share.exists(found => (40 to 55).contains(found.group(1).toInt)), how(df))
      }
      // All keys have as many rows as others.
      assert(made(check(skewed(0, 800), small, "k", "full", "auto")) === Seq("none"))
      // Two rows of two hundred are a hundredth, and say nothing.
      withSQLConf(sample -> "200", "spark.sql.shuffle.partitions" -> "100") {
        val even = skewJoin(skewed(0, 4000, keys = 2000), skewed(5000, 40), "k", "full", "auto")
        assert(made(even) === Seq("none"))
      }
      // It is switched off; or there is nothing that could be looked at without computing it first.
      withSQLConf(sample -> "0") {
        val df = skewJoin(large, small, "k", "full", "auto")
        assert(made(df) === Seq("none"))
        assert(how(df).contains("chosen as partitions are not split in this session"), how(df))
      }
      val distinct = large.distinct()
      assert(made(skewJoin(distinct, small, "k", "full", "auto")) === Seq("none"))
      // A side that can be broadcast needs no look.
      withSQLConf(BroadcastBelow -> "1m") {
        assert(made(skewJoin(large, small, "k", "inner", "auto")) === Seq("broadcast"))
      }
      // A hint looks at nothing, and takes keys as text.
      def hinted(options: String*) =
        large.join(small.hint("skewext_join", "auto" +: options: _*), Seq("k"), "full")
      assert(made(hinted()) === Seq("none"))
      val given = hinted("hot_keys=3")
      assertStock(given, large.join(small, Seq("k"), "full"))
      assert(made(given) === Seq("salted"))
      assert(how(given).contains("chosen as hot keys are given"), how(given))
    }
    // What the shuffle tells is better than what a look would.
    assert(!how(skewJoin(large, small, "k", "full", "auto")).contains("hot key"))
  }

  test("auto goes on without hot keys if the look fails") {
    withSQLConf("spark.sql.adaptive.enabled" -> "false", "spark.sql.ansi.enabled" -> "true") {
      // The query reads no text that is no number, and the sample does.
      val failing = spark
        .range(0, 800, 1, 2)
        .selectExpr("id", "CAST(IF(id < 700, string(id % 40), 'none') AS BIGINT) AS k")
      val df = skewJoin(failing, small, "k", "inner", "auto").where("id < 700")
      assertStock(df, failing.join(small, "k").where("id < 700"))
      assert(made(df) === Seq("none"))
      assert(Guard.failuresIn(spark).exists(_._1 == "sampling rows for hot keys"))
    }
  }
}
