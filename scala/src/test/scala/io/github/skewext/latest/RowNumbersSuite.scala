package io.github.skewext.latest

import io.github.skewext.asof.AsOfTest
import io.github.skewext.explain.Explainer
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.execution.SortExec
import org.apache.spark.sql.execution.window.{WindowExec, WindowGroupLimitExec}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.{SPARK_VERSION, SparkConf}

/** Filters on row numbers, rewritten to latest rows, against Spark. */
class RowNumbersSuite extends AsOfTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SkewConf.LATEST_REWRITE.key, "true")

  /** Rows without two equal values of t in a key, and with equal values of u. */
  private def withRows(body: => Unit): Unit = withTempView("r", "s") {
    spark
      .range(0, 120, 1, 4)
      .selectExpr(
        "if(id % 11 = 0, null, id % 9) AS k",
        "concat('k', id % 5) AS j",
        "if(id % 17 = 0, null, id * 7 % 121) AS t",
        "id % 4 AS u",
        "array(0.0D, -0.0D, double('nan'), null, 1.5D)[CAST(id % 5 AS INT)] AS d",
        "id AS a")
      .createOrReplaceTempView("r")
    spark.range(0, 12, 1, 2).selectExpr("id AS k", "id * 2 AS w").createOrReplaceTempView("s")
    body
  }

  private def latestOf(df: DataFrame): Seq[LatestRowsExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case node: LatestRowsExec => node }

  private def windows(df: DataFrame): Int =
    collectWithSubqueries(df.queryExecution.executedPlan) { case node: WindowExec => node }.size

  private def limits(df: DataFrame): Int = collectWithSubqueries(df.queryExecution.executedPlan) {
    case node: WindowGroupLimitExec => node
  }.size

  private def notes(df: DataFrame): Seq[String] =
    SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution)).notes

  /** The rows of r with a row number, and a filter of it. */
  private def numbered(
      filter: String,
      by: String = "k",
      order: String = "t DESC, a",
      function: String = "row_number()",
      from: String = "r",
      select: String = "*"): String =
    s"SELECT $select FROM (SELECT *, $function OVER (PARTITION BY $by ORDER BY $order) AS n " +
      s"FROM $from) WHERE $filter"

  private def check(query: String, latest: Int = 1): DataFrame = {
    val df = sql(query)
    assertSameRows(df.collect().toSeq, rowsWhenOff(sql(query)), "Spark")
    assert(latestOf(df).size === latest, df.queryExecution)
    var whenOff = 0
    withSQLConf(Off) {
      val off = sql(query)
      off.collect()
      assert(latestOf(off).isEmpty)
      whenOff = exchanges(off).size
    }
    assert(exchanges(df).size <= whenOff, df.queryExecution)
    df
  }

  private val rewritten: Seq[(String, String)] = Seq(
    "n = 1",
    "1 = n",
    "n <=> 1",
    "n <= 1",
    "1 >= n",
    "n < 2",
    "2 > n",
    "n = 1L",
    "n IN (1)",
    "n BETWEEN 0 AND 1").map(filter => filter -> numbered(filter)) ++ Seq(
    "another predicate" -> numbered("n = 1 AND a % 3 > 0 AND k > 2"),
    "a subquery in another predicate" -> numbered("n = 1 AND a > (SELECT min(w) FROM s)"),
    "a predicate on the key" -> numbered("n = 1 AND k = 4"),
    "the number is not selected" -> numbered("n = 1", select = "k, a"),
    "the number is computed with" -> numbered("n = 1", select = "a, n + 1 AS m, n * a AS o"),
    "nulls of the order" -> numbered("n = 1", order = "t DESC NULLS FIRST, a DESC"),
    "ascending" -> numbered("n = 1", order = "u DESC, t ASC NULLS LAST, a"),
    "an expression as order" -> numbered("n = 1", order = "u * -1, abs(60 - t), a"),
    "a string as order" -> numbered("n = 1", order = "j DESC, d, a"),
    "two keys" -> numbered("n = 1", by = "k, j"),
    "an expression as key" -> numbered("n = 1", by = "k % 3"),
    "a key of floating-point numbers" -> numbered("n = 1", by = "d"),
    "keys in an array" -> numbered("n = 1", by = "array(d, u)"),
    "keys in a struct" -> numbered("n = 1", by = "struct(d, j)"),
    "a decimal key" -> numbered("n = 1", by = "CAST(u AS DECIMAL(30, 2))"),
    "no rows" -> numbered("n = 1", from = "(SELECT * FROM r WHERE a < 0 OR rand(1) > 2)"),
    "above a union" -> numbered("n = 1", from = "(SELECT * FROM r UNION ALL SELECT * FROM r)")
      .replace("t DESC, a", "t DESC, a, k"),
    "above an aggregate" ->
      numbered("n = 1", from = "(SELECT k, t, max(a) AS a FROM r GROUP BY k, t)"),
    "above a join by its key" -> numbered("n = 1", from = "r JOIN s USING (k)"),
    "above a window of its key" -> numbered(
      "n = 1",
      from = "(SELECT *, sum(a) OVER (PARTITION BY k ORDER BY u, a) AS z FROM r)"),
    "below a join" -> s"SELECT * FROM s LEFT JOIN (${numbered("n = 1")}) USING (k)",
    "below a sort-merge join" ->
      s"SELECT /*+ MERGE(s) */ * FROM (${numbered("n = 1")}) JOIN s USING (k)",
    "below an aggregate" -> s"SELECT k, max(a), count(*) FROM (${numbered("n = 1")}) GROUP BY k",
    "in a subquery" -> s"SELECT * FROM s WHERE k IN (${numbered("n = 1", select = "k")})")

  test("filters of the first row are rewritten, and no exchange is added") {
    withRows {
      for ((name, query) <- rewritten) withClue(s"$name: ") {
        withAdaptive {
          val df = check(query)
          assert(windows(df) === (if (name.startsWith("above a window")) 1 else 0))
          assert(notes(df).isEmpty)
        }
      }
    }
  }

  private val NoKey = "no PARTITION BY, or a constant in it"
  private val isRanked = "keeps all rows that are equal in the order"
  private val leftAlone: Seq[(String, String, Option[String])] = Seq(
    ("rank", numbered("n = 1", function = "rank()", order = "u"), Some(s"rank() $isRanked")),
    (
      "dense_rank",
      numbered("n < 2", function = "dense_rank()", order = "u"),
      Some(s"dense_rank() $isRanked")),
    ("the second row", numbered("n = 2"), None),
    ("two rows", numbered("n <= 2"), None),
    ("or", numbered("n = 1 OR a = 7"), None),
    ("not", numbered("n <> 1"), None),
    ("lag", numbered("n = 1", function = "lag(u)"), None),
    ("no filter", numbered("true"), None),
    ("a constant key", numbered("n = 1", by = "'x'"), Some(NoKey)),
    (
      "no key",
      "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY a) AS n FROM r) WHERE n = 1",
      Some(NoKey)),
    (
      "two functions",
      "SELECT * FROM (SELECT *, row_number() OVER w AS n, lag(a) OVER w AS b FROM r " +
        "WINDOW w AS (PARTITION BY k ORDER BY t, a)) WHERE n = 1",
      Some("the window has other functions, too")),
    (
      "a predicate with a random number",
      numbered("n = 1 AND a + rand(1) >= 0"),
      Some("it is not deterministic")))

  test("does not rewrite others; explain gives the reason if they keep the first row", Slow) {
    withRows {
      for ((name, query, why) <- leftAlone) withClue(s"$name: ") {
        val df = check(query, latest = 0)
        assert(notes(df) === why.toSeq.map(w =>
          s"The first rows of a window's partitions are Spark's: $w."))
      }
    }
  }

  test("keys with a collation are not rewritten") {
    assume(!SPARK_VERSION.startsWith("3."), "Spark 3.5 has no collations")
    withRows {
      val df = check(numbered("n = 1", by = "j COLLATE UTF8_LCASE"), latest = 0)
      assert(notes(df).head.contains("keys of a type that is not compared by bytes"))
      check(numbered("n = 1", order = "j COLLATE UTF8_LCASE DESC, a"))
    }
  }

  test("a stream is not rewritten") {
    val stream = spark.readStream.format("rate").load()
    stream.createOrReplaceTempView("rates")
    val query = sql(
      "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY value ORDER BY timestamp) AS n " +
        "FROM rates) WHERE n = 1")
    val plan = spark.sessionState.optimizer.execute(query.queryExecution.analyzed)
    val filter = plan.collectFirst { case filter: Filter => filter }.get
    assert(RewriteRowNumbers(filter).isEmpty)
    assert(RewriteRowNumbers.leftToSpark(plan) === Seq("streaming input"))
  }

  test("returns one of several first rows, with its other columns") {
    withRows {
      val query = numbered("n = 1", order = "u DESC")
      val df = sql(query)
      val firsts = df.select("k", "u").collect().toSeq
      val key = df.collect().toSeq
      assert(latestOf(df).size === 1)
      assertSameRows(firsts, rowsWhenOff(sql(query).select("k", "u")), "Spark")
      val all = sql("SELECT *, 1 AS n FROM r").collect().map(_.toString).toSet
      assert(key.forall(row => all.contains(row.toString)))
      // A constant is no order.
      assert(check(numbered("n = 1", order = "1", select = "k")).count() === 10)
    }
  }

  test("a sort above stays, because the rows have another order than those of a window") {
    withRows {
      for (sorted <- Seq[DataFrame => DataFrame](
          _.sortWithinPartitions("k"),
          _.coalesce(1).sort("k", "t"))) {
        val df = sorted(sql(numbered("n = 1")))
        val rows = df.select("k").collect().toSeq
        assert(latestOf(df).nonEmpty)
        var expected = Seq.empty[Any]
        withSQLConf(Off) {
          expected = sorted(sql(numbered("n = 1"))).select("k").collect().toSeq
        }
        assert(rows === expected)
      }
    }
  }

  test("keeps Spark's limit of each map task, but not where rows are not shuffled again") {
    withRows {
      for (adaptive <- Seq("true", "false")) {
        withSQLConf("spark.sql.adaptive.enabled" -> adaptive) {
          val shuffled = check(numbered("n = 1"))
          assert(limits(shuffled) === 1)
          val merged =
            check(numbered("n = 1", from = "(SELECT /*+ MERGE(s) */ * FROM r JOIN s USING (k))"))
          assert(limits(merged) === 0)
          // Sorts of the join.
          val sorts = collectWithSubqueries(merged.queryExecution.executedPlan) {
            case sort: SortExec => sort
          }
          assert(sorts.size === 2, merged.queryExecution)
        }
      }
      withSQLConf("spark.sql.optimizer.windowGroupLimitThreshold" -> "-1") {
        assert(limits(check(numbered("n = 1"))) === 0)
      }
    }
  }

  test("operators above do not rely on the order of a limit that is dropped", Slow) {
    val one = spark.range(0, 1000, 1, 1).selectExpr("id * 7919 % 100 AS k", "id AS t")
    val parts = spark
      .range(0, 2000, 1, 4)
      .selectExpr("id * 7919 % 200 AS k", "id % 3 AS b", "id AS t", "concat('v', id) AS v")
    val bySort = "spark.sql.autoBroadcastJoinThreshold" -> "-1"
    withTempView("one", "parts") {
      withTable("bucketed", "others") {
        one.createOrReplaceTempView("one")
        parts.repartition(3, col("k")).createOrReplaceTempView("parts")
        parts.write.bucketBy(3, "k").saveAsTable("bucketed")
        spark
          .range(0, 200, 1, 2)
          .selectExpr("id AS k", "id * 2 AS w")
          .write
          .bucketBy(3, "k")
          .saveAsTable("others")
        def newest(from: String, by: String) =
          s"(${numbered("n = 1", by = by, order = "t DESC", from = from)})"
        val sums = "sum(t) OVER (PARTITION BY k ORDER BY b ROWS UNBOUNDED PRECEDING)"
        for {
          (from, by, query) <- Seq(
            ("one", "k", "SELECT k, t FROM ? ORDER BY k"),
            ("parts", "k", "SELECT * FROM ? JOIN others USING (k) ORDER BY k"),
            ("bucketed", "k", "SELECT * FROM ? JOIN others USING (k) ORDER BY k"),
            ("parts", "k, b", s"SELECT k, b, $sums FROM ? ORDER BY k, b"),
            ("parts", "k, b", "SELECT k, max(v), count(*) FROM ? GROUP BY k ORDER BY k"))
        } withClue(s"$from by $by: ")(withSQLConf(bySort)(withAdaptive {
          def df = sql(query.replace("?", newest(from, by)))
          val on = df
          val rows = on.collect().toSeq
          assert(latestOf(on).size === 1 && limits(on) === 0, on.queryExecution)
          var expected = Seq.empty[Row]
          withSQLConf(Off) {
            expected = df.collect().toSeq
          }
          assert(rows === expected)
        }))
      }
    }
  }

  test("a setting and the name of the rule switch it off") {
    withRows {
      for (setting <- Seq(
          SkewConf.LATEST_REWRITE.key -> "false",
          SkewConf.EXCLUDED_RULES.key -> "RewriteRowNumbers")) withSQLConf(setting) {
        assert(notes(check(numbered("n = 1"), latest = 0)).isEmpty)
      }
    }
  }

  test("explain shows the rewrite") {
    withRows {
      val df = sql(numbered("n = 1"))
      val Seq(join) = SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution)).joins
      assert(join.title === "latest row of each key [k] by t, a")
      assert(join.origin.text === "row_number() = 1 of a window became one operator")
    }
  }
}
