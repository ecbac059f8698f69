package io.github.skewext.technique

import io.github.skewext.SkewExtensions
import io.github.skewext.explain.Origin
import io.github.skewext.join.MultiFullJoin
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions}
import org.apache.spark.sql.{AnalysisException, DataFrame, SparkSession}

/** How techniques are asked for, and those that leave a join as it is. */
class SkewJoinSuite extends SkewJoinTest {

  test("every technique gives the rows and the columns of Spark's join", Slow) {
    val cases =
      for (technique <- SkewTechniques.all.map(_.name); how <- Hows) yield (technique, how)
    // Most techniques have a suite of their own.
    for ((technique, how) <- covering(cases)) {
      check(large, small, "k", how, technique)
    }
  }

  test("none is Spark's join unchanged") {
    val df = check(large, small, "k", "inner", "none")
    assert(made(df) === Seq("none"))
    assert(collect(df.queryExecution.executedPlan) { case j: SortMergeJoinExec => j }.size === 1)
  }

  test("broadcast sends the smaller side, or the one that is named, where Spark can", Slow) {
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

  test("several columns of one name, which are one column where a side has no match", Slow) {
    val both = Seq("coalesce(l.k, r.k) as k", "coalesce(r.k, l.k) as k")
    val options = Seq(
      "broadcast_map" -> Map.empty[String, String],
      "iterative_broadcast" -> Map("chunks" -> "3", "passes" -> "2"))
    val selected = Seq(both, both.take(1) :+ "l.k", both.take(1) :+ "r.k", both :+ "l.k" :+ "r.k")
    for {
      (technique, given) <- options
      (how, side) <- Seq("left" -> "left", "right" -> "right", "full" -> "left", "full" -> "right")
      columns <- selected
    } {
      val on = col("l.k") === col("r.k")
      val (l, r) = (skewed(0, 20).alias("l"), skewed(20, 30).alias("r"))
      val df = skewJoin(l, r, on, how, technique, given + ("side" -> side)).selectExpr(columns: _*)
      assertStock(df, stockJoin(l, r, on, how).selectExpr(columns: _*))
      assert(made(df).contains(technique), s"$technique $side $how")
    }
  }

  test("columns of one name of a side, below a chain that gives them new names") {
    val rows = "SELECT * FROM VALUES"
    for (technique <- Seq("broadcast", "broadcast_map", "iterative_broadcast")) {
      def query(hint: String) =
        s"""SELECT $hint k, v, r.k AS j, x FROM (SELECT id AS k, id AS x FROM range(1, 8)) a
           |NATURAL FULL JOIN (SELECT id AS k, id AS y FROM range(3, 5)) y
           |NATURAL FULL JOIN (($rows (1L, 2), (3L, 4), (null, 5) AS t(k, v))
           |  NATURAL FULL JOIN ($rows (1L), (9L), (null) AS r(k)) r)""".stripMargin
      withSQLConf(
        // Rows of values are computed by the optimizer, which leaves the new names only.
        SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> "",
        SkewConf.MULTI_JOIN_REWRITE.key -> "true") {
        val df = sql(query(s"/*+ SKEWEXT_JOIN(r, $technique) */"))
        assertStock(df, sql(query("")))
        assert(made(df).contains(technique))
        assert(df.queryExecution.optimizedPlan.exists(_.isInstanceOf[MultiFullJoin]))
      }
    }
  }

  test("sides that return a column twice, and results of a multi-way join with themselves", Slow) {
    val twice = small.selectExpr("*", "k", "k AS k")
    val joined = fullJoin("k")(skewed(0, 20), skewed(20, 30))
    // A regression: both sides had the key of the multi-way join as their column.
    val (x, y) = (joined.where("v0 IS NOT NULL"), joined.where("v20 IS NOT NULL"))
    for {
      (technique, options) <- Seq(
        "broadcast_map" -> Map("side" -> "left"),
        "broadcast_map" -> Map("side" -> "right"),
        "iterative_broadcast" -> Map("chunks" -> "2", "passes" -> "2"),
        "salted" -> Map("salts" -> "2"),
        "adaptive" -> Map.empty[String, String])
      how <- Seq("left", "right", "full")
    } {
      check(
        twice.toDF("a", "v", "b", "c", "d"),
        large,
        col("v") === col("v0"),
        how,
        technique,
        options)
      for (columns <- Seq(Seq("x.k AS xk", "y.k AS yk"), Seq("x.*", "y.k"))) {
        def shown(join: DataFrame) = join.selectExpr(columns: _*)
        val on = col("x.k") === col("y.k")
        val (left, right) = (x.select("k").alias("x"), y.select("k").alias("y"))
        assertStock(
          shown(skewJoin(left, right, on, how, technique, options)),
          shown(stockJoin(left, right, on, how)))
      }
    }
  }

  test("a side twice, with a correlated subquery on the same table") {
    withTempView("few", "many") {
      spark.sql(
        "CREATE TEMPORARY VIEW few AS SELECT CAST(x AS smallint) AS k, CAST(y AS float) AS j, " +
          "CAST(z AS int) AS v FROM VALUES (0, 0.5, 0), (3, 1.5, 3) AS rows(x, y, z)")
      spark.sql(
        "CREATE TEMPORARY VIEW many AS SELECT CAST(x AS double) AS j " +
          "FROM VALUES (null), (0.5) AS rows(x)")
      val df = spark.sql("""
          |SELECT /*+ SKEWEXT_JOIN(a, 'iterative_broadcast', 'chunks=2') */ a.j
          |FROM few a LEFT ANTI JOIN many b ON a.j = b.j
          |WHERE EXISTS (SELECT 1 FROM few c WHERE coalesce(a.k, 3) = c.v)""".stripMargin)
      // Rows of a query become a relation with the ids of its columns, of which Spark's tests have none.
      withSQLConf(SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> "") {
        assert(checkSame(df).size === 1)
        assert(made(again(df)).distinct === Seq("iterative_broadcast"))
      }
    }
  }

  test("adaptive has settings of its own, for its join alone", Slow) {
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

  test("a technique inside a chain of joins stays", Slow) {
    val third = skewed(2, 60)
    val stock = stockJoin(stockJoin(large, small, "k", "full"), third, "k", "full")
    val rows = rowsWhenOff(stock)
    val cases = for {
      technique <- SkewTechniques.all.map(_.name) if technique != "auto"
      isHint <- Seq(true, false)
    } yield (technique, isHint)
    for ((technique, isHint) <- covering(cases)) {
      val hot = if (technique == "salted") Seq(Seq(lit(3))) else null
      val words = technique +: (if (hot == null) Nil else Seq("hot_keys=3"))
      val first =
        if (isHint) large.join(small.hint("skewext_join", words: _*), Seq("k"), "full")
        else skewJoin(large, small, "k", "full", technique, Map.empty, hot)
      val df = first.join(third, Seq("k"), "full")
      assertStock(df, stock.schema, rows)
      assert(made(df).contains(technique))
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

  test("rejects wrong arguments when called") {
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

  test("a session that was started without the extension", Slow) {
    val other = TestSessions.withoutExtensions(spark)
    SkewExtensions.register(other)
    other.conf.set("spark.sql.shuffle.partitions", "3")
    other.conf.set(BroadcastBelow, "-1")
    def in(rows: DataFrame) = SqlInternals.dataFrame(other, rows.queryExecution.logical)
    val cases =
      for (technique <- SkewTechniques.all.map(_.name); how <- Seq("full", "left_semi"))
        yield (technique, how)
    for ((technique, how) <- covering(cases)) {
      val df = skewJoin(in(large), in(small), "k", how, technique)
      assertStock(df, large.join(small, Seq("k"), how))
    }
    val doubles = in(table("k, v", "(-0.0D, 1), (double('NaN'), 3), (null, 4)"))
    val zeros = in(table("k, w", "(0.0D, 1), (double('NaN'), 2), (null, 3)"))
    assertStock(
      skewJoin(doubles, zeros, "k", "full", "broadcast_map"),
      doubles.join(zeros, Seq("k"), "full"))
    other.conf.set(Off._1, Off._2)
    assert(made(skewJoin(doubles, zeros, "k", "full", "broadcast_map")).isEmpty)
  }

  test("switched off, every call is Spark's join, also one that a technique refuses") {
    val refused = () => skewJoin(large, small, "k", "left", "broadcast", Map("side" -> "left"))
    intercept[AnalysisException](refused())
    withSQLConf(Off) {
      for (df <- Seq(refused(), skewJoin(large, small, "k", "full", "broadcast_map"))) {
        assert(made(df).isEmpty)
        assert(collect(df.queryExecution.executedPlan) { case j: SortMergeJoinExec =>
          j
        }.size === 1)
      }
    }
  }

  test("such a session refuses to copy a side that a subquery in the condition refers to") {
    val bare = TestSessions.withoutExtensions(spark)
    SkewExtensions.register(bare)
    withTempView("t") {
      table("x", "(1), (2), (5), (8)").createOrReplaceTempView("t")
      bare.sql("SELECT * FROM VALUES (1), (2), (5), (8) AS t(x)").createOrReplaceTempView("t")
      def joined(in: SparkSession, subquery: String) = {
        def rows(of: DataFrame) = SqlInternals.dataFrame(in, of.queryExecution.logical)
        val on = expr(s"a.k = b.k AND EXISTS (SELECT 1 FROM t WHERE $subquery)")
        val options = Map("chunks" -> "2", "side" -> "right")
        skewJoin(
          rows(large).as("a"),
          rows(small).as("b"),
          on,
          "inner",
          "iterative_broadcast",
          options)
      }
      val refused = intercept[AnalysisException](joined(bare, "t.x = a.v0"))
      assert(refused.getMessage.contains(TechniqueReason.CorrelatedSubquery.text))
      joined(bare, "t.x = 8").queryExecution.optimizedPlan
      assert(made(joined(spark, "t.x = a.v0")).contains("iterative_broadcast"))
    }
  }

  test("a technique that refuses no join is not planned when it is called") {
    var optimized = 0
    val counting = new Rule[LogicalPlan] {
      override def apply(plan: LogicalPlan): LogicalPlan = {
        optimized += 1
        plan
      }
    }
    def optimizedBy(technique: String): Int = {
      optimized = 0
      skewJoin(large, small, "k", "full", technique)
      optimized
    }
    spark.experimental.extraOptimizations = Seq(counting)
    try {
      for (technique <- Seq("adaptive", "none", "auto"))
        assert(optimizedBy(technique) === 0, technique)
      assert(optimizedBy("broadcast_map") > 0)
    } finally {
      spark.experimental.extraOptimizations = Nil
    }
  }
}
