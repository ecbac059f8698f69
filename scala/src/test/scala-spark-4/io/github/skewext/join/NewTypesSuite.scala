package io.github.skewext.join

import io.github.skewext.MultiJoinTest
import io.github.skewext.facts.ComparedByBytes
import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf
import org.apache.spark.sql.{AnalysisException, DataFrame, Row}

/** Types that Spark 4 has and 3.5 has not, and what its ANSI mode makes of keys. */
class NewTypesSuite extends MultiJoinTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set("spark.sql.timeType.enabled", "true")
      .set("spark.sql.geospatial.enabled", "true")

  private def times(i: Int, keys: String*): DataFrame = table(
    s"k, v$i",
    keys.zipWithIndex
      .map { case (k, row) => s"(CAST($k AS TIME), ${i * 100 + row})" }
      .mkString(", "))

  test("TIME as key and as value") {
    val inputs = Seq(
      times(0, "'00:00:00'", "'12:30:00.000001'", "null"),
      times(1, "'12:30:00.000001'", "'23:59:59.999999'"),
      times(2, "'00:00:00'", "'23:59:59.999999'", "null"))
    assert(checkFullJoin("k")(inputs: _*).count() === 5)
    assert(ComparedByBytes(inputs.head.schema("k").dataType))
    val values = inputs.zipWithIndex.map { case (df, i) =>
      df.selectExpr(s"v$i % 100 AS n", s"k AS t$i")
    }
    checkFullJoin("n")(values: _*)
  }

  test("TIME in files that are merged by it") {
    withTempPath { folder =>
      val path = folder.getPath
      times(0, "'12:30:00'", "'00:00:00'", "null").write.parquet(s"$path/a")
      times(1, "'12:30:00'", "'01:00:00'").write.parquet(s"$path/b")
      checkFullJoin("k")(spark.read.parquet(s"$path/a"), spark.read.parquet(s"$path/b"))
    }
  }

  // Parquet files do not store tenths of a microsecond. Spark does not read TIME from ORC files.
  test("buckets and sorted files by TIME, which Parquet files store in microseconds") {
    withTable("t0") {
      sql(
        "CREATE TABLE t0(k INT, at TIME, v INT) USING parquet " +
          "CLUSTERED BY (k, at) INTO 4 BUCKETS")
      for (seconds <- Seq("1", "1.0000001", "1.0000002", "1.0000003"))
        sql(s"INSERT INTO t0 SELECT 1, time_from_seconds($seconds), ${seconds.length}")
      assert(checkOff(sql("SELECT * FROM t0 WHERE k = 1 AND at = TIME'00:00:01'")).size === 4)
    }
    withTable("t0") {
      sql(
        "CREATE TABLE t0(k INT, at TIME, v INT) USING parquet " +
          "CLUSTERED BY (k) SORTED BY (k, at, v) INTO 2 BUCKETS")
      sql(
        "INSERT INTO t0 SELECT /*+ COALESCE(1) */ 1, time_from_seconds(s), v " +
          "FROM VALUES (1.0000001, 9), (1.0000002, 1) AS rows(s, v)")
      checkOff(sql("SELECT *, rank() OVER (PARTITION BY k ORDER BY at, v) FROM t0"))
    }
  }

  private def checkOff(df: DataFrame): Seq[Row] = {
    val rows = df.collect().toSeq
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    rows
  }

  test("VARIANT as value, but not as key") {
    def variants(i: Int, rows: String*) = table(s"k, j", rows.mkString(", "))
      .selectExpr("k", s"parse_json(j) AS v$i")
    val a = variants(0, "(1, '{\"x\": [1, 2]}')", "(2, 'null')", "(null, '1')")
    val b = variants(1, "(1, '\"text\"')", "(3, null)")
    val joined = fullJoin("k")(a, b)
    checkJoin(joined.selectExpr("k", "to_json(v0)", "to_json(v1)"))
    checkAnswer(
      joined.where("k = 1").selectExpr("to_json(v0)", "v1::string"),
      Row("{\"x\":[1,2]}", "text"))
    val e =
      intercept[AnalysisException](fullJoin("v")(a.selectExpr("v0 AS v"), b.selectExpr("v1 AS v")))
    assert(e.getMessage.contains("of type VARIANT, which cannot be compared"))
  }

  test("GEOMETRY and GEOGRAPHY as values, but not as keys") {
    // A point as "well-known binary": its byte order, the kind of shape, x and y.
    def point(x: String) = s"X'0101000000000000000000$x" + "0000000000001C40'"
    def shapes(i: Int, rows: String*) = table("k, w", rows.mkString(", "))
      .selectExpr("k", s"st_geomfromwkb(w) AS g$i", s"st_geogfromwkb(w) AS h$i")
    val inputs = Seq(
      shapes(0, s"(1, ${point("3140")})", "(2, null)", s"(null, ${point("3240")})"),
      shapes(1, s"(1, ${point("3240")})", s"(1, ${point("3340")})", s"(3, ${point("3140")})"),
      shapes(2, s"(3, ${point("3340")})", s"(2, ${point("3140")})"))
    val shown = for (kind <- Seq("g", "h"); i <- inputs.indices) yield s"hex(st_asbinary($kind$i))"
    for (conf <- Seq(Nil, Seq(SkewConf.MULTI_JOIN_GROUPING.key -> "sort"))) {
      withSQLConf(conf: _*) {
        val rows = checkJoin(fullJoin("k")(inputs: _*).selectExpr("k" +: shown: _*))
        assert(rows.size === 5 && rows.exists(row => s"${row(1)}".contains("3140")))
      }
    }
    for ((key, name) <- Seq(
        "g0" -> "GEOMETRY",
        "h0" -> "GEOGRAPHY",
        "array(g0)" -> "ARRAY<GEOMETRY",
        "named_struct('h', h0)" -> "STRUCT<h")) {
      val e = intercept[AnalysisException](
        fullJoin("s")(Seq.fill(2)(inputs.head.selectExpr(s"$key AS s")): _*))
      assert(e.getMessage.contains(s"of type $name") && e.getMessage.contains("cannot be compared"))
    }
  }

  test("ANSI mode: a string and a number are numbers, of two inputs") {
    val numbers = table("k, v", "(1, 1), (2, 2)")
    val texts = table("k, w", "('1', 1), ('3', 3)")
    withSQLConf("spark.sql.ansi.enabled" -> "true") {
      checkFullJoin("k")(numbers, texts)
      intercept[Exception](fullJoin("k")(numbers, table("k, w", "('one', 1)")).collect())
    }
    withSQLConf("spark.sql.ansi.enabled" -> "false") {
      intercept[AnalysisException](fullJoin("k")(numbers, texts))
    }
  }
}
