package io.github.skewext.technique

import io.github.skewext.platform.SkewConf

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

  test("auto salts given keys where partitions are not split at run time", Slow) {
    def how(df: DataFrame) = explained(df).map(_.origin.text).distinct.mkString("\n")
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      val without = check(large, small, "k", "full", "auto")
      assert(made(without) === Seq("none"))
      assert(how(without).contains("chosen as partitions are not split in this session"))
      val given = large.join(small.hint("skewext_join", "auto", "hot_keys=3"), Seq("k"), "full")
      assertStock(given, large.join(small, Seq("k"), "full"))
      assert(made(given) === Seq("salted"))
      assert(how(given).contains("chosen as hot keys are given"), how(given))
      assert(how(given).contains("1 hot key"), how(given))
      withSQLConf(BroadcastBelow -> "1m") {
        assert(made(skewJoin(large, small, "k", "inner", "auto")) === Seq("broadcast"))
      }
    }
  }
}
