package io.github.skewext.join

import io.github.skewext.Joins
import io.github.skewext.explain.report.SkewReport
import io.github.skewext.facts.StableRows
import io.github.skewext.inputs.KeyType
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.SkewTest
import io.github.skewext.skew.plan.SkewReason
import scala.collection.JavaConverters._

import org.apache.spark.sql.functions.{col, lit, when}
import org.apache.spark.sql.{AnalysisException, DataFrame, Row}

/** Strings that are equal though their bytes are not. */
class CollatedKeysSuite extends SkewTest {

  private def input(i: Int, collation: String, keys: String*): DataFrame =
    table(
      s"k, v$i",
      keys.zipWithIndex.map { case (k, row) => s"($k, ${i * 100 + row})" }.mkString(", "))
      .withColumn("k", col("k").cast(s"string collate $collation"))

  private def inputs(collation: String): Seq[DataFrame] = Seq(
    input(0, collation, "'a'", "'B'", "'c '", "null"),
    input(1, collation, "'A'", "'A'", "'b'", "'d'"),
    input(2, collation, "'a'", "'c'", "'D'", "null"))

  for ((collation, rows) <- Seq("UTF8_LCASE" -> 8, "UNICODE_CI" -> 8, "UTF8_BINARY_RTRIM" -> 10))
    test(s"keys in $collation are compared as Spark's joins compare them") {
      val Seq(a, b, c) = inputs(collation)
      assert(checkFullJoin("k")(a, b, c).count() === rows)
      checkFullJoin("k")(a, b)
      checkFullJoin("k")(c, a, b)
      for (roles <- Seq(
          Seq("required", "optional", "excluded"),
          Seq("required", "required", "optional")))
        checkJoin(multiJoin(Seq(a, b, c), Seq("k"), roles = roles))
      withSQLConf(SkewConf.MULTI_JOIN_BROADCAST.key -> "true") {
        checkSame(
          multiJoin(Seq(a, b, c), Seq("k"), roles = Seq("required", "optional", "optional")))
      }
    }

  test("'a' meets 'A', each row shows its own input's key, and conditions ask that") {
    val Seq(a, b, _) = inputs("UTF8_LCASE")
    val joined = fullJoin("k")(a, b)
    checkAnswer(
      joined.where("v0 = 0").selectExpr("cast(k as string)", "v1"),
      Seq(Row("a", 100), Row("a", 101)))
    for (condition <- Seq("k = 'A'", "k COLLATE UTF8_BINARY = 'a'", "k IN ('b', 'x')", "k > 'a'"))
      checkSame(joined.where(condition))
  }

  test("a collated key beside others") {
    val Seq(a, b, c) = inputs("UTF8_LCASE").map(_.withColumn("l", lit(1L)))
    checkFullJoin("k", "l")(a, b, c)
    checkFullJoin("l", "k")(a, b, c)
  }

  test("strings of different collations, and collations inside of other types, are refused") {
    val Seq(a, b, _) = inputs("UTF8_LCASE")
    val e = intercept[AnalysisException](fullJoin("k")(a, input(1, "UNICODE_CI", "'a'")))
    assert(e.getMessage.contains("Key column 'k' has types that cannot all be compared"))
    for (nested <- Seq("array(k)", "struct(k)")) {
      val failed = intercept[AnalysisException](
        fullJoin("n")(a.selectExpr(s"$nested AS n"), b.selectExpr(s"$nested AS n")))
      assert(failed.getMessage.contains("which cannot be compared, so it cannot be a key"))
    }
  }

  test("chains in SQL that compare by a collation are Spark's own") {
    withSQLConf(SkewConf.MULTI_JOIN_REWRITE.key -> "true") {
      inputs("UTF8_LCASE").zipWithIndex.foreach { case (df, i) =>
        df.createOrReplaceTempView(s"c$i")
      }
      // Of comparisons with expressions Spark makes no keys of bytes.
      for (key <- Seq("%s.k", "concat(%s.k, '')")) {
        def on(l: String, r: String) = s"ON ${key.format(l)} = ${key.format(r)}"
        val chain = spark.sql(
          s"SELECT * FROM c0 FULL JOIN c1 ${on("c0", "c1")} FULL JOIN c2 ${on("c0", "c2")}")
        checkSame(chain)
        val using = spark.sql("SELECT * FROM c0 FULL JOIN c1 USING (k) FULL JOIN c2 USING (k)")
        checkSame(using)
      }
    }
  }

  test("skewed joins by a collation: ours is split, of Spark's what compares bytes") {
    // So many quarters of the rows have the hot key.
    def side(i: Int, rows: Int, hot: String, quarters: Int) = skewed(i, rows).select(
      when(col("k") % 4 < quarters, lit(hot))
        .otherwise(col("k").cast("string"))
        .cast("string collate UTF8_LCASE")
        .as("k"),
      col(s"v$i"),
      col(s"s$i"))
    val (a, b) = (side(0, 900, "hot", 3), side(1, 40, "HOT", 1))
    checkSplit(fullJoin("k")(a, b))
    val stock = a.join(b, Seq("k"), "full")
    val rows = stock.collect().toSeq
    assertSameRows(rows, rowsWhenOff(stock), "the same query with skewext off")
    val bySorting = a.join(b, a("k").substr(0, 9) === b("k").substr(0, 9), "full")
    checkWhole(bySorting)
    assert(reasons(bySorting).contains(SkewReason.KeyType))
  }

  test("a group by a collation has the string that arrives first: such rows are read once only") {
    val strings =
      skewed(0, 900, hot = 3).withColumn("s", when(col("v0") % 2 === 0, "a").otherwise("A"))
    def grouped(collation: String) = strings
      .select(col("k"), col("v0"), col("s").cast(s"string collate $collation").as("s"))
      .groupBy("k", "s", "v0")
      .count()
    val other = skewed(1, 40, hot = 1)
    for ((collation, isStable) <- Seq("UTF8_LCASE" -> false, "UTF8_BINARY" -> true)) {
      val groups = grouped(collation)
      for (df <- Seq(groups, groups.select("k", "s").distinct(), groups.select("k")))
        assert(StableRows.areIn(df.queryExecution.executedPlan) === isStable, df.queryExecution)
      val joined = groups.join(other, Seq("k"), "full")
      if (isStable) {
        checkSplit(joined)
      } else {
        checkWhole(joined)
        assert(reasons(joined).contains(SkewReason.NotStable), Joins.explain(joined).toString)
      }
    }
  }

  test("a report counts equal keys as one") {
    val rows = input(0, "UTF8_LCASE", "'a'", "'A'", "'b'", "'c'", "'A'")
    val report = SkewReport.of(spark, Seq(rows), Seq(Seq("k")), Some(2), 0.5, withBytes = false)
    // By their bytes, no key would have half of the rows.
    val Seq(hot) = report.frame.where("key IS NOT NULL").collect().toSeq
    assert(hot.getSeq[Long](2) === Seq(3))
  }
}
