package io.github.skewext.technique

import java.util.concurrent.atomic.AtomicInteger

import io.github.skewext.SkewExtensions
import io.github.skewext.explain.{ExplainedJoin, Explainer, Origin}
import io.github.skewext.internal.SkewConf
import io.github.skewext.plan.TechniqueReason

import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, ShuffledHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions, TestShims, TestShuffles}
import org.apache.spark.sql.{AnalysisException, DataFrame}

/** How techniques are asked for and chosen, and those that leave a join as it is. */
class SkewJoinSuite extends TechniqueTest {

  private val BroadcastBelow = "spark.sql.autoBroadcastJoinThreshold"

  private def large = skewed(0, 800, hot = 2)
  private def small = skewed(30, 40)

  private def explained(df: DataFrame): Seq[ExplainedJoin] =
    SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution)).joins

  test("every technique gives the rows and the columns of Spark's join") {
    val cases =
      for (technique <- SkewTechniques.all.map(_.name); how <- Hows) yield (technique, how)
    // Most techniques have a suite of their own.
    for ((technique, how) <- some(20, cases)) {
      check(large, small, "k", how, technique)
    }
  }

  test("none is Spark's join as it is") {
    val df = check(large, small, "k", "inner", "none")
    assert(made(df) === Seq("none"))
    assert(collect(df.queryExecution.executedPlan) { case j: SortMergeJoinExec => j }.size === 1)
  }

  test("broadcast sends the smaller side, or the one that is named, where Spark can") {
    def sides(how: String, options: Map[String, String] = Map.empty) = {
      val df = check(large, small, "k", how, "broadcast", options)
      assert(exchanges(df).size <= 1)
      collect(df.queryExecution.executedPlan) { case j: BroadcastHashJoinExec =>
        j.buildSide.toString
      }
    }
    assert(sides("inner") === Seq("BuildRight"))
    assert(sides("inner", Map("side" -> "left")) === Seq("BuildLeft"))
    assert(sides("left") === Seq("BuildRight"))
    assert(sides("right") === Seq("BuildLeft"))
    // No side of a full outer join can be by Spark: it goes on to broadcast_map.
    val full = check(large, small, "k", "full", "broadcast")
    assert(made(full) === Seq("broadcast"))
    assert(broadcasts(full) === 1)
    val error = intercept[AnalysisException](
      skewJoin(large, small, "k", "left", "broadcast", Map("side" -> "left")))
    assert(error.getMessage.contains("the left side of a left outer join"))
  }

  test("a side whose columns are aliases of the same name") {
    val renamed = small.select(small.columns.map(c => col(c).as(c)): _*)
    for (technique <- Seq("adaptive", "broadcast_map"))
      check(large, renamed, "k", "full", technique)
  }

  test("adaptive has settings of its own, for its join alone") {
    withSQLConf(Threshold -> "1g") {
      val whole = check(large, small, "k", "full", "adaptive")
      assert(splitJoins(whole).isEmpty)
      val options = Map("threshold" -> "2500", "slice_bytes" -> "2000")
      val df = check(large, small, "k", "full", "adaptive", options)
      assert(splitJoins(df).size === 1)
      val how = explained(df).head.origin.text
      assert(how.contains("slice_bytes=2000, threshold=2500"), how)
      // Another join in the same query is not split.
      val both = df.select("k", "v0").join(skewed(1, 800, hot = 3), Seq("k"), "full")
      both.collect()
      assert(splitJoins(both).size === 1)
    }
    // The session's settings split it, the join's own do not.
    val strict = check(large, small, "k", "full", "adaptive", Map("threshold" -> "1g"))
    assert(splitJoins(strict).isEmpty)
    assert(splitJoins(check(large, small, "k", "full", "adaptive")).size === 1)
  }

  test("auto broadcasts what is small, else leaves it to splits, and says why") {
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

  test("what auto has chosen is not stopped, what was named is") {
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

  test("hints of Spark's own are obeyed, by whatever technique") {
    def shape(df: DataFrame): Seq[String] = {
      assertStock(df, large.join(small, Seq("k"), "left"))
      collect(df.queryExecution.executedPlan) {
        case _: BroadcastHashJoinExec => "broadcast"
        case _: ShuffledHashJoinExec => "hash"
        case _: SortMergeJoinExec => "merge"
      }
    }
    for (technique <- SkewTechniques.all.map(_.name)) withClue(s"$technique: ") {
      def byFunction(hint: String) =
        skewJoin(large, small.hint(hint), "k", "left", technique, Map.empty, null)
      val df = byFunction("broadcast")
      assert(shape(df) === Seq("broadcast"))
      assert(explained(df).head.origin.text.contains("as the hint broadcast says"))
      assert(shape(byFunction("shuffle_hash")) === Seq("hash"))
      val words = Seq(small.hint("broadcast").hint("skew_join", technique)) :+
        small.hint("skew_join", technique).hint("broadcast")
      for (side <- words) {
        val hinted = large.join(side, Seq("k"), "left")
        assert(shape(hinted) === Seq("broadcast"))
        assert(made(hinted) === Seq(technique))
      }
    }
    large.createOrReplaceTempView("l")
    small.createOrReplaceTempView("s")
    for (hints <- Seq("SKEW_JOIN(s, auto), BROADCAST(s)", "BROADCAST(s), SKEW_JOIN(s, auto)")) {
      val df = spark.sql(s"SELECT /*+ $hints */ * FROM l LEFT JOIN s USING (k)")
      assert(shape(df) === Seq("broadcast"))
      assert(made(df) === Seq("auto"))
    }
    // Spark can broadcast no side of this one, the technique can.
    val full = skewJoin(large, broadcast(small), "k", "full", "broadcast_map")
    assert(made(full).toSet === Set("broadcast_map"))
    // A hint on a join below.
    val below = large.join(broadcast(small), "k").select("k", "v0")
    val above = skewJoin(below, skewed(2, 60), "k", "full", "adaptive")
    above.collect()
    assert(collect(above.queryExecution.executedPlan) { case b: BroadcastHashJoinExec =>
      b
    }.size === 1)
  }

  test("a technique inside a chain of joins stays") {
    val third = skewed(2, 60)
    for (technique <- SkewTechniques.all.map(_.name) if technique != "auto") {
      val hot = if (technique == "salted") Seq(Seq(lit(3))) else null
      val words = technique +: (if (hot == null) Nil else Seq("hot_keys=3"))
      for (first <- Seq(
          skewJoin(large, small, "k", "full", technique, Map.empty, hot),
          large.join(small.hint("skew_join", words: _*), Seq("k"), "full"))) {
        val df = first.join(third, Seq("k"), "full")
        assertStock(df, stockJoin(stockJoin(large, small, "k", "full"), third, "k", "full"))
        assert(made(df).contains(technique))
      }
    }
  }

  test("a hint runs no job, whether its query is planned or explained") {
    val jobs = new AtomicInteger
    val listener = new SparkListener {
      override def onJobStart(start: SparkListenerJobStart): Unit = jobs.incrementAndGet()
    }
    val sides = (large.localCheckpoint(), small.localCheckpoint())
    spark.sparkContext.addSparkListener(listener)
    try {
      for (technique <- SkewTechniques.all.map(_.name)) {
        for (adaptive <- Seq("true", "false"))
          withSQLConf("spark.sql.adaptive.enabled" -> adaptive) {
            val df = sides._1.join(sides._2.hint("skew_join", technique), Seq("k"), "left")
            explained(df)
            df.queryExecution.executedPlan
            TestShuffles.awaitListeners(spark.sparkContext)
            assert(jobs.get === 0, technique)
            if (technique == "salted") assert(refusals(df) === Seq(TechniqueReason.WrongOption))
          }
      }
    } finally {
      spark.sparkContext.removeSparkListener(listener)
    }
  }

  test("a hint on a join of streams is left out") {
    for (technique <- Seq("salted", "broadcast_map", "auto")) {
      val (l, r) = (TestShims.numbers(spark), TestShims.numbers(spark))
      val left = l.toDF().toDF("k")
      val words = technique +: (if (technique == "broadcast_map") Nil else Seq("hot_keys=1"))
      val joined = left.join(r.toDF().toDF("k").hint("skew_join", words: _*), "k")
      val query = joined.writeStream.format("memory").queryName(s"joined_$technique").start()
      try {
        for (_ <- 0 until 2) {
          l.addData(Seq.fill(20)(1))
          r.addData(Seq.fill(20)(1))
          query.processAllAvailable()
        }
      } finally {
        query.stop()
      }
      assert(spark.table(s"joined_$technique").count() === 1600)
    }
  }

  test("auto looks at some rows where partitions are not split at run time") {
    def how(df: DataFrame) = explained(df).map(_.origin.text).distinct.mkString("\n")
    val sample = SkewConf.SKEW_JOIN_SAMPLE_ROWS.key
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      for (rows <- Seq("100000", "200")) withSQLConf(sample -> rows) {
        val df = check(large, small, "k", "full", "auto")
        assert(made(df) === Seq("salted"))
        assert(how(df).contains("chosen as hot keys are found by a look at some rows"), how(df))
        assert(how(df).contains("1 hot key, the most frequent with"), how(df))
      }
      // All keys have as many rows as others.
      assert(made(check(skewed(0, 800), small, "k", "full", "auto")) === Seq("none"))
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
        large.join(small.hint("skew_join", "auto" +: options: _*), Seq("k"), "full")
      assert(made(hinted()) === Seq("none"))
      val given = hinted("hot_keys=3")
      assertStock(given, large.join(small, Seq("k"), "full"))
      assert(made(given) === Seq("salted"))
      assert(how(given).contains("chosen as hot keys are given"), how(given))
    }
    // What the shuffle tells is better than what a look would.
    assert(!how(skewJoin(large, small, "k", "full", "auto")).contains("hot key"))
  }

  test("switched off, it is Spark's join") {
    for (technique <- SkewTechniques.all.map(_.name)) {
      val df = skewJoin(large, small, "k", "full", technique)
      withSQLConf(Off) {
        val off = again(df)
        assert(collect(off.queryExecution.executedPlan) { case j: SortMergeJoinExec =>
          j
        }.size === 1)
        assert(explained(off).head.origin.status === Origin.SwitchedOff)
      }
    }
  }

  test("what is wrong is said at once") {
    def error(body: => Any): String = intercept[AnalysisException](body).getMessage
    val unknown = error(skewJoin(large, small, "k", "full", "magic"))
    assert(unknown.contains("no technique 'magic'") && unknown.contains("broadcast_map"))
    val option = error(skewJoin(large, small, "k", "full", "broadcast", Map("sides" -> "left")))
    assert(option.contains("no option 'sides'") && option.contains("side"))
    val value = error(skewJoin(large, small, "k", "full", "adaptive", Map("factor" -> "much")))
    assert(value.contains("The option factor must be a number of at least 1.0, not 'much'"))
    assert(error(skewJoin(large, small, "k", "cross", "none")).contains("cross join"))
    val unequal = large.as("l") -> small.as("r")
    val noKey = error(skewJoin(unequal._1, unequal._2, col("l.k") < col("r.k"), "inner", "auto"))
    assert(noKey.contains(TechniqueReason.NoEqualKeys.text))
    assert(error(skewJoin(large, small, "nokey", "full", "auto")).contains("nokey"))
    check(large, small, "k", "inner", "auto")
  }

  test("hints, in SQL and of DataFrames") {
    large.createOrReplaceTempView("l")
    small.createOrReplaceTempView("s")
    val query = "* FROM l FULL JOIN s USING (k)"
    for (hint <- Seq(
        "skew_join(s, broadcast_map)",
        "SKEW_JOIN('broadcast_map', l)",
        "SKEW_JOIN(l, broadcast_map, 'side=right')")) {
      val df = spark.sql(s"SELECT /*+ $hint */ $query")
      assertStock(df, spark.sql(s"SELECT $query"))
      assert(made(df).toSet === Set("broadcast_map"), hint)
    }
    val hinted = large.join(small.hint("skew_join", "adaptive", "threshold=1g"), Seq("k"), "full")
    assertStock(hinted, large.join(small, Seq("k"), "full"))
    assert(made(hinted) === Seq("adaptive"))
    assert(splitJoins(hinted).isEmpty)
  }

  // Spark begins with the plan of a CTE anew when there are other predicates on it to push down: it
  // would go on for ever if these were about columns that are made anew each time.
  test("in a CTE that is not a part of the query") {
    def asked(join: DataFrame): DataFrame = {
      join.createOrReplaceTempView("j")
      spark.sql("""WITH w AS (SELECT k, a, rand() AS r FROM j)
                  |SELECT k, a, r >= 0 AS p FROM w WHERE k > 1 AND a < 300
                  |UNION ALL SELECT k, a, r < 0 AS p FROM w WHERE k <= 5 AND a > 100""".stripMargin)
    }
    val left = large.withColumnRenamed(large.columns(1), "a")
    for {
      technique <- Seq("broadcast_map", "iterative_broadcast", "salted")
      how <- Seq("inner", "full", "left_semi")
    } withClue(s"$technique, $how: ") {
      assertStock(
        asked(skewJoin(left, small, "k", how, technique)),
        asked(stockJoin(left, small, "k", how)))
    }
  }

  test("hints that are wrong change nothing") {
    large.createOrReplaceTempView("l")
    small.createOrReplaceTempView("s")
    val query = "* FROM l FULL JOIN s USING (k)"
    for (hint <- Seq(
        "SKEW_JOIN(s)",
        "SKEW_JOIN(s, magic)",
        "SKEW_JOIN(t, broadcast_map)",
        "SKEW_JOIN(s, broadcast_map, 'chunk=3')",
        "SKEW_JOIN(s, 3)")) {
      val df = spark.sql(s"SELECT /*+ $hint */ $query")
      assertStock(df, spark.sql(s"SELECT $query"))
      assert(contents(df).isEmpty, hint)
    }
    // Right as a hint, but not for this join: that is told by the explanation.
    val refused = spark.sql(
      "SELECT /*+ SKEW_JOIN(s, broadcast, 'side=left') */ " +
        "* FROM l LEFT JOIN s USING (k)")
    assertStock(refused, spark.sql("SELECT * FROM l LEFT JOIN s USING (k)"))
    assert(refusals(refused) === Seq(TechniqueReason.JoinType))
    val origin = explained(refused).head.origin
    assert(origin.status === Origin.LeftAlone)
    assert(origin.text.contains(TechniqueReason.JoinType.text))
    assert(origin.advice.nonEmpty)
  }

  test("a session that was started without the extension") {
    val other = TestSessions.withoutExtensions(spark)
    SkewExtensions.register(other)
    other.conf.set("spark.sql.shuffle.partitions", "3")
    other.conf.set(BroadcastBelow, "-1")
    def in(rows: DataFrame) = SqlInternals.dataFrame(other, rows.queryExecution.logical)
    for (technique <- SkewTechniques.all.map(_.name); how <- Seq("full", "left_semi")) {
      val df = skewJoin(in(large), in(small), "k", how, technique)
      assertStock(df, large.join(small, Seq("k"), how))
    }
    val doubles = in(table("k, v", "(-0.0D, 1), (double('NaN'), 3), (null, 4)"))
    val zeros = in(table("k, w", "(0.0D, 1), (double('NaN'), 2), (null, 3)"))
    assertStock(
      skewJoin(doubles, zeros, "k", "full", "broadcast_map"),
      doubles.join(zeros, Seq("k"), "full"))
  }
}
