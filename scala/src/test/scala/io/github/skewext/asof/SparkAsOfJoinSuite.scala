package io.github.skewext.asof

import io.github.skewext.explain.{Explainer, Explanation}
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.catalyst.plans.logical.AsOfJoin
import org.apache.spark.sql.catalyst.plans.{AsOfJoinDirection, JoinType}
import org.apache.spark.sql.functions.{col, expr}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SparkShims, SqlInternals}
import org.apache.spark.sql.{AnalysisException, Column, DataFrame, Row}
import org.apache.spark.{SPARK_VERSION, SparkConf}

/** Spark's own as-of joins, rewritten, against Spark. */
class SparkAsOfJoinSuite extends AsOfTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SkewConf.MULTI_JOIN_REWRITE.key, "true")

  private val Directions = Seq("backward", "forward", "nearest")

  /** An as-of join as `DataFrame._joinAsOf` of PySpark makes it. */
  private def sparks(
      left: DataFrame,
      right: DataFrame,
      at: (String, String),
      on: Column,
      how: String = "left",
      tolerance: String = null,
      exact: Boolean = true,
      direction: String = "backward"): DataFrame =
    SqlInternals.dataFrame(
      spark,
      AsOfJoin(
        left.queryExecution.analyzed,
        right.queryExecution.analyzed,
        SparkShims.expression(col(at._1)),
        SparkShims.expression(col(at._2)),
        Option(on).map(SparkShims.expression),
        JoinType(how),
        Option(tolerance).map(t => SparkShims.expression(expr(t))),
        exact,
        AsOfJoinDirection(direction)))

  /** Times of a spine are multiples of 4. */
  private def spine(time: String): DataFrame = spark
    .range(0, 80, 1, 2)
    .selectExpr(
      "id AS a",
      "if(id % 9 = 0, null, id % 5) AS k",
      s"if(id % 11 = 0, null, ${time.replace("?", "(4 * (id * 7 % 16))")}) AS t")

  /**
   * With the remainder 0, some versions are at the same time. Those of a key for i = 2 are 28 apart: a
   * multiple of 4 is in the middle of no two.
   */
  private def versions(i: Int, time: String, remainder: Int): DataFrame = spark
    .range(0, 70, 1, 2)
    .selectExpr(
      s"if(id % 13 = 0, null, id % ${5 + i}) AS k$i",
      s"if(id % 17 = 0, null, ${time.replace("?", s"(4 * id + $remainder)")}) AS t$i",
      s"map('v', id) AS m$i",
      s"concat('v', id) AS v$i")

  private case class Times(time: String, tolerance: String)

  private val times = Seq(
    Times("cast(? AS int)", "8"),
    Times("?", "8L"),
    Times("cast(? AS decimal(20, 2))", "8.00BD"),
    Times("date_add(DATE'2020-02-01', cast(? AS int))", "INTERVAL 8 DAYS"),
    Times(
      "TIMESTAMP'2020-03-08 00:00:00' + make_dt_interval(0, cast(? AS int))",
      "INTERVAL 8 HOURS"),
    Times(
      "TIMESTAMP_NTZ'1969-12-31 00:00:00' + make_dt_interval(0, cast(? AS int))",
      "INTERVAL '1' DAY"))

  private def explained(df: DataFrame): Explanation =
    SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution))

  /** Compares with Spark, which plans the same query with skewext off. */
  private def check(operators: Int)(df: => DataFrame): Unit = {
    var expected: Seq[Row] = Nil
    withSQLConf(Off) {
      expected = df.collect().toSeq
    }
    val on = df
    assertSameRows(on.collect().toSeq, expected, "the same query with skewext off")
    assert(joins(on).size === operators, on.queryExecution)
  }

  // Each direction with each type and each bound.
  private val cases = covering(for {
    of <- times
    direction <- Directions
    exact <- Seq(true, false)
    isWithin <- Seq(true, false)
    how <- Seq("left", "inner")
  } yield ((of, direction), (direction, exact, isWithin), how)).groupBy(_._1._1)

  for (of <- times; time = of.time) test(s"returns Spark's rows: $time", Slow) {
    for ((_, (direction, exact, isWithin), how) <- cases(of))
      withClue(s"$direction $isWithin $exact $how: ")(withoutClockChanges(check(1) {
        val remainder = if (direction == "nearest" && !exact) 1 else 0
        sparks(
          spine(time),
          versions(2, time, remainder).drop("m2"),
          "t" -> "t2",
          col("k") === col("k2"),
          how,
          if (isWithin) of.tolerance else null,
          exact,
          direction)
      }))
  }

  test("a tolerance whose sums wrap around excludes versions, as in Spark", Slow) {
    val ints = "cast(? AS int)"
    for {
      (time, tolerance) <- Seq(ints -> "2147483640", s"$ints - 50" -> "2147483640")
      direction <- Directions
    } withClue(s"$time $direction: ")(withSQLConf(SQLConf.ANSI_ENABLED.key -> "false")(check(1) {
      sparks(
        spine(time),
        versions(2, time, 0).drop("m2"),
        "t" -> "t2",
        col("k") === col("k2"),
        tolerance = tolerance,
        direction = direction)
    }))
  }

  // Spark compares the strings as 3, and subtracts them as 3.9, 3.2 and 3.7.
  test("leaves strings to Spark that it subtracts as floating-point numbers", Slow) {
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "false") {
      val texts = table("k1, v, s", "(1, 'a', '3.9'), (1, 'b', '3.2')")
      def ofNumber(t: Int, direction: String) =
        sparks(table("k, t", s"(1, $t)"), texts, "t" -> "s", onKey, direction = direction)
          .select("v")
      def ofText = sparks(
        table("k, t", "(1, '3.7')"),
        table("k1, t1", "(1, 2), (1, 4)"),
        "t" -> "t1",
        onKey,
        direction = "nearest").select("t1")
      for ((joined, expected) <- Seq(
          (() => ofNumber(5, "backward"), "a"),
          (() => ofNumber(2, "forward"), "b"),
          (() => ofText, 4))) {
        checkAnswer(joined(), Row(expected))
        check(0)(joined())
        assert(
          explained(joined()).notes === Seq(
            "An as-of join of Spark's is not rewritten: times that Spark subtracts as " +
              "floating-point numbers."))
      }
    }
  }

  private def onKey: Column = col("k") === col("k1")

  private def withoutClockChanges(body: => Unit): Unit =
    withSQLConf(SQLConf.SESSION_LOCAL_TIMEZONE.key -> "UTC")(body)

  // Clocks go back at 09:00 UTC. The second version is nearer, but Spark subtracts local times.
  test("leaves timestamps to Spark if clocks change") {
    val spine = table("k, t", "(1, TIMESTAMP'2024-11-03 11:00:00Z')")
    val versions = table(
      "k1, t1, v1",
      "(1, TIMESTAMP'2024-11-03 08:30:00Z', 1), (1, TIMESTAMP'2024-11-03 09:10:00Z', 2)")
    def joined = sparks(spine, versions, "t" -> "t1", col("k") === col("k1"))
    withSQLConf(SQLConf.SESSION_LOCAL_TIMEZONE.key -> "America/Los_Angeles") {
      checkAnswer(joined.select("v1"), Row(1))
      check(0)(joined)
      assert(
        explained(joined).notes === Seq(
          "An as-of join of Spark's is not rewritten: Spark subtracts local times, and " +
            "America/Los_Angeles changes clocks."))
    }
    withoutClockChanges {
      checkAnswer(joined.select("v1"), Row(2))
      check(1)(joined)
    }
  }

  test("a chain by one key shuffles the spine once", Slow) {
    def chain(how: String) = {
      val first = sparks(spine("?"), versions(1, "?", 0), "t" -> "t1", col("k") === col("k1"), how)
        .select(col("t"), col("k"), (col("a") + 1).as("b"), col("v1"))
      sparks(
        first.where("b > 3"),
        versions(2, "?", 1).drop("m2"),
        "t" -> "t2",
        col("k2") === col("k"),
        how,
        tolerance = "9L",
        direction = "forward")
    }
    withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1") {
      Seq("left", "inner").foreach { how =>
        check(2)(chain(how))
        assert(exchanges(chain(how)).size === 3)
      }
    }
  }

  test("compares char(n) keys of two lengths with padding", Slow) {
    withTable("c3", "c5") {
      Seq("c3" -> 3, "c5" -> 5).foreach { case (name, length) =>
        sql(
          s"CREATE TABLE $name (k$length CHAR($length), t$length INT, v$length INT) USING parquet")
        sql(s"INSERT INTO $name VALUES ('a', 1, 1), ('abc', 1, 2), (NULL, 1, 3)")
      }
      sql("INSERT INTO c5 VALUES ('abcde', 1, 4)")
      for {
        padded <- Seq("true", "false")
        (left, right) <- Seq((3, 5), (5, 3))
      } withSQLConf(SQLConf.READ_SIDE_CHAR_PADDING.key -> padded) {
        def joined = sparks(
          sql(s"SELECT * FROM c$left"),
          sql(s"SELECT * FROM c$right"),
          s"t$left" -> s"t$right",
          col(s"k$left") === col(s"k$right"),
          how = "inner")
        check(1)(joined)
        checkAnswer(joined.select("v3", "v5"), Seq(Row(1, 1), Row(2, 2)))
      }
    }
  }

  test("joins a table with itself") {
    check(1) {
      val table = spine("?")
      sparks(
        table,
        table.selectExpr("k AS k1", "t AS t1", "a AS a1"),
        "t" -> "t1",
        col("k") === col("k1"),
        exact = false)
    }
  }

  test("keys that may fail, below LATERAL and in a common table expression", Slow) {
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "true")(withTempView("raw", "valid", "j") {
      table("s", "('1'), ('2')").createOrReplaceTempView("valid")
      def raw(more: String) =
        table("s, t1, p", s"('1', 1, 10), ('1', 3, 11), ('2', 2, 20)$more")
          .createOrReplaceTempView("raw")
      def query(text: String, joined: (DataFrame, DataFrame) => DataFrame = byTime) = {
        val prices =
          sql("SELECT CAST(r.s AS INT) AS k1, t1, p FROM raw r JOIN valid v ON r.s = v.s")
        // Spark itself fails below LATERAL unless a projection renames the columns of the versions.
        joined(table("k, t", "(1, 2), (1, 4), (2, 1), (3, 5)"), prices)
          .selectExpr("k", "t", "p AS price")
          .createOrReplaceTempView("j")
        sql(text)
      }
      def byTime(spine: DataFrame, prices: DataFrame) =
        sparks(spine, prices, "t" -> "t1", onKey)
      for ((text, operators) <- Seq(
          """SELECT * FROM VALUES (1), (2), (4) AS u(k),
            |LATERAL (SELECT t, price FROM j WHERE j.k = u.k)""".stripMargin -> 1,
          // Spark computes it for each place that reads it.
          """WITH x AS (SELECT * FROM j)
            |SELECT * FROM x WHERE k = 1 UNION ALL SELECT * FROM x WHERE k = 2""".stripMargin -> 2)) {
        raw("")
        check(operators)(query(text))
        val rows = query(text).collect().toSeq
        // Spark itself computes the key of the row that the join drops, and fails.
        raw(", ('x', 1, 30)")
        checkAnswer(query(text), rows)
        checkAnswer(query(text, (l, r) => asOf(l, "t")(Versions(r, "t1", keys = Seq("k1")))), rows)
      }
    })
  }

  test("leaves keys with a collation inside to Spark") {
    assume(!SPARK_VERSION.startsWith("3."), "Spark 3.5 has no collations")
    def rows(key: String, columns: String) =
      spark.sql(s"SELECT named_struct('a', '$key' COLLATE UTF8_LCASE) AS $columns")
    val (left, right) = (rows("x", "k, 1 AS t"), rows("X", "k1, 1 AS t1, 'v' AS v1"))
    def joined = sparks(left, right, "t" -> "t1", col("k") === col("k1")).select("v1")
    checkAnswer(joined, Row("v"))
    check(0)(joined)
  }

  test("leaves other joins to Spark", Slow) {
    val (left, right) = (spine("?"), versions(1, "?", 0).drop("m1"))
    val byKey = col("k") === col("k1")
    def double(df: DataFrame, time: String) = df.withColumn(time, col(time).cast("double"))
    check(0)(sparks(left, right, "t" -> "t1", null))
    assert(
      explained(sparks(left, right, "t" -> "t1", null)).notes === Seq(
        "An as-of join of Spark's is not rewritten: no equality of columns of both inputs."))
    check(0)(sparks(left, right, "t" -> "t1", byKey && col("a") > 3))
    check(0)(sparks(left, right, "t" -> "t1", col("k") <=> col("k1")))
    check(0)(sparks(double(left, "t"), double(right, "t1"), "t" -> "t1", byKey))
    withSQLConf(SkewConf.MULTI_JOIN_REWRITE.key -> "false") {
      check(0)(sparks(left, right, "t" -> "t1", byKey))
    }
    val error = intercept[AnalysisException] {
      sparks(left, right, "t" -> "t1", byKey, tolerance = "-1L")
    }
    assert(error.getMessage.contains("tolerance"))
  }
}
