package io.github.skewext.merge

import io.github.skewext.explain.ExplainedSkew
import io.github.skewext.skew.plan.SkewReason

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{Column, DataFrame}

/**
 * MERGE into tables of Iceberg: which side of its join is split, that target rows which match twice are
 * found, and that contents are as without us.
 */
class MergeSuite extends MergeTest {

  private val Hot = 1000L

  /** A key of the target that is in one partition with the hot one. */
  private lazy val beside = besideHot(0, 40)

  private def besideHot(from: Long, until: Long): Long = {
    def partition(key: String) = s"pmod(hash($key), $shufflePartitions)"
    val in = spark.range(from, until).where(s"${partition("id")} = ${partition(s"${Hot}L")}")
    in.head.longValue
  }

  private val clauses = Map(
    'M' -> """WHEN MATCHED AND s.v % 3 = 0 THEN DELETE
             |WHEN MATCHED THEN UPDATE SET v = s.v, txt = s.txt""".stripMargin,
    'D' -> "WHEN MATCHED THEN DELETE",
    'N' -> "WHEN NOT MATCHED THEN INSERT (k, v, txt) VALUES (s.k, s.v, s.txt)",
    'S' -> """WHEN NOT MATCHED BY SOURCE AND t.k % 5 = 0 THEN DELETE
             |WHEN NOT MATCHED BY SOURCE AND t.k % 5 = 1 THEN UPDATE SET v = -1""".stripMargin)

  private def rows(n: Long, key: Column): DataFrame =
    spark
      .range(0, n, 1, 4)
      .select(
        key.as("k"),
        col("id").as("v"),
        md5(col("id").cast("string").cast("binary")).as("txt"))

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    val id = col("id")
    val keys = when(id % 14 === 0, id / 14).when(id % 14 === 1, lit(null)).cast("bigint")
    for ((name, key) <- Seq("plain" -> keys, "hot" -> when(id % 14 > 1, Hot).otherwise(keys))) {
      write(rows(840, key).where("k IS NOT NULL OR v % 140 = 1"), s"ice.db.$name")
    }
    for (hot <- Seq(true, false); twice <- Seq(true, false)) {
      val n = if (hot) 840 else 44
      // The two rows of one key are written by the first and the last map task.
      val key = when(id === 0, beside)
        .when(id === n - 1, if (twice) beside else 999L)
        .when(id === 1, Hot)
        .when(id === 2, lit(null))
        .otherwise(if (hot) when(id % 21 === 0, id / 21 + 40).otherwise(Hot) else id + 40)
      rows(n, key.cast("bigint")).createOrReplaceTempView(source(hot, twice))
    }
  }

  private def source(hot: Boolean, twice: Boolean) =
    s"source_${if (hot) "hot" else "plain"}_${if (twice) "twice" else "once"}"

  private def sql(table: String, source: String, kinds: String): String =
    s"MERGE INTO $table t USING $source s ON t.k = s.k\n" + kinds.map(clauses).mkString("\n")

  private def checkSplit(plan: SparkPlan): Unit =
    assert(isSplitByUs(plan) || isSplitBySpark(plan), plan)

  // Each pair of clauses, mode and skewed side; `make test-all` has all three with each other.
  for {
    (mode, i) <- Seq(CopyOnWrite, MergeOnRead).zipWithIndex
    (kinds, j) <- Seq("M", "MS", "MN", "MNS", "N", "S", "NS").zipWithIndex
  } {
    val isChecked = kinds.contains('M')

    if (testAll || (i + j) % 2 == 0)
      test(
        s"$kinds, $mode, the source is skewed",
        Slow(
          "M, copy-on-write, the source is skewed",
          "MN, copy-on-write, the source is skewed",
          "MNS, merge-on-read, the source is skewed",
          "MS, merge-on-read, the source is skewed")) {
        setMode("ice.db.plain", mode)
        val legal = sql("ice.db.plain", source(hot = true, twice = false), kinds)
        val plan = planOf(checkLegal("ice.db.plain", legal))
        assert(reasonsIn(plan).contains(SkewReason.MergeTarget) === isChecked, plan)
        if (!isChecked) {
          checkSplit(plan)
        } else {
          assert(!isSplitByUs(plan) && !isSplitBySpark(plan), plan)
          val twice = sql("ice.db.plain", source(hot = true, twice = true), kinds)
          assert(restoring("ice.db.plain")(findsTwice(runMerge(twice))))
        }
      }

    if (testAll || (i + j) % 2 == 1)
      test(
        s"$kinds, $mode, the target is skewed",
        Slow("MN, merge-on-read, the target is skewed")) {
        setMode("ice.db.hot", mode)
        val plan = planOf(
          checkLegal("ice.db.hot", sql("ice.db.hot", source(hot = false, twice = false), kinds)))
        checkSplit(plan)
        if (isChecked) {
          val twice = sql("ice.db.hot", source(hot = false, twice = true), kinds)
          assert(restoring("ice.db.hot")(findsTwice(runMerge(twice))))
        }
      }
  }

  for (kinds <- Seq("M", "MN")) {
    test(s"$kinds, $MergeOnRead: Spark by itself slices the source, and we take it back", Slow) {
      setMode("ice.db.plain", MergeOnRead)
      for (hash <- Seq("0", "100MB")) {
        withSQLConf("spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold" -> hash) {
          val twice = sql("ice.db.plain", source(hot = true, twice = true), kinds)
          withSQLConf(Off) {
            val (_, _, df) = merged("ice.db.plain", twice)
            assert(isSplitBySpark(planOf(df)))
          }
          assert(restoring("ice.db.plain")(findsTwice(runMerge(twice))))
        }
      }
    }
  }

  test("no technique copies the target, whose ids are in the write") {
    val given =
      Seq("D" -> "iterative_broadcast, 'chunks=2'", "DN" -> "broadcast_map", "DN" -> "auto")
    for (mode <- Seq(CopyOnWrite, MergeOnRead); (kinds, technique) <- given) {
      setMode("ice.db.plain", mode)
      val hinted = s"(SELECT /*+ SKEWEXT_JOIN(x, $technique) */ * " +
        s"FROM ${source(hot = false, twice = false)} x)"
      checkLegal("ice.db.plain", sql("ice.db.plain", hinted, kinds))
    }
  }

  test("both sides are skewed: the target alone is sliced", Slow) {
    val cases =
      for (mode <- Seq(CopyOnWrite, MergeOnRead); kinds <- Seq("M", "MNS")) yield (mode, kinds)
    // The hot key of the source matches nothing, and is in one partition with the target's.
    val other = besideHot(2000, 2100)
    for ((mode, kinds) <- covering(cases)) {
      setMode("ice.db.hot", mode)
      for (twice <- Seq(true, false)) {
        spark
          .table(source(hot = true, twice))
          .withColumn("k", when(col("k") === Hot, other).otherwise(col("k")))
          .createOrReplaceTempView("both")
        val merge = sql("ice.db.hot", "both", kinds)
        if (twice) {
          assert(restoring("ice.db.hot")(findsTwice(runMerge(merge))))
        } else {
          checkSplit(planOf(checkLegal("ice.db.hot", merge)))
        }
      }
    }
  }

  test("explain gives the reason why the source is not split") {
    setMode("ice.db.plain", MergeOnRead)
    val (_, _, df) =
      merged("ice.db.plain", sql("ice.db.plain", source(hot = true, twice = false), "MN"))
    val skew = explained(df).filter(_.status == ExplainedSkew.Whole)
    assert(skew.size === 1)
    assert(skew.head.text.startsWith(SkewReason.MergeTarget.text))
    assert(skew.head.advice === Some(SkewReason.MergeTarget.advice))
  }
}
