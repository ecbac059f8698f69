package io.github.skewext.technique

import io.github.skewext.SkewExtensions
import io.github.skewext.explain.{ExplainedJoin, Explainer, Origin}

import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions}
import org.apache.spark.sql.{AnalysisException, DataFrame}

/** How techniques are asked for and chosen, and those that leave a join as it is. */
class SkewJoinSuite extends TechniqueTest {

  private val BroadcastBelow = "spark.sql.autoBroadcastJoinThreshold"

  private def large = skewed(0, 800, hot = 2)
  private def small = skewed(30, 40)

  private def explained(df: DataFrame): Seq[ExplainedJoin] =
    SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution)).joins

  test("every technique gives the rows and the columns of Spark's join") {
    for (technique <- SkewTechniques.all.map(_.name); how <- Hows) {
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
      assert(how(full).contains("next would be adaptive"), how(full))
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
