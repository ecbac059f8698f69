package io.github.skewext.facts

import io.github.skewext.MultiJoinTest

/** Plans with a first column that may fail, and whether predicates on it may be added to them. */
class SafeToPushSuite extends MultiJoinTest {

  private def isSafe(query: String): Boolean = {
    val plans = spark.sql(query).queryExecution
    val answers = Seq(plans.analyzed, plans.optimizedPlan).map(p => SafeToPush(p, p.output.head))
    assert(answers.distinct.size === 1, plans)
    answers.head
  }

  private val cast = "CAST(s AS INT) AS k"

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    for (name <- Seq("raw", "valid"))
      spark.range(9).selectExpr("string(id) AS s", "int(id) AS i").createOrReplaceTempView(name)
    spark.udf.register("slow", (i: Int) => i)
  }

  test("a cast above a node that drops rows") {
    withSQLConf("spark.sql.ansi.enabled" -> "true") {
      val joined = "raw JOIN valid USING (s)"
      for (unsafe <- Seq(
          s"SELECT $cast FROM $joined",
          s"SELECT k FROM (SELECT $cast, i FROM raw LEFT SEMI JOIN valid USING (s)) WHERE i > 1",
          s"SELECT k, count(*) FROM (SELECT $cast FROM $joined) GROUP BY k",
          s"SELECT $cast, count(*) FROM $joined GROUP BY s",
          s"SELECT i AS k FROM raw UNION ALL SELECT $cast FROM $joined",
          s"SELECT k + 1L AS k FROM (SELECT s AS k FROM $joined)",
          s"WITH x AS (SELECT $cast FROM $joined) SELECT * FROM x JOIN x AS y USING (k)",
          s"SELECT k, row_number() OVER (PARTITION BY k ORDER BY s) AS n " +
            s"FROM (SELECT $cast, s FROM $joined)",
          s"SELECT $cast FROM (SELECT s FROM raw GROUP BY s HAVING count(*) > 1)",
          s"SELECT $cast FROM raw GROUP BY s HAVING count(*) > 1",
          s"SELECT $cast FROM (SELECT s, count(*) OVER (PARTITION BY s) AS n FROM raw) WHERE n > 1",
          s"SELECT $cast FROM raw WHERE s IN (SELECT s FROM valid)",
          s"SELECT $cast FROM raw WHERE slow(i) = 1"))
        assert(!isSafe(unsafe), unsafe)
    }
  }

  test("a filter by a column that is expensive to compute, which Spark 4.2 evaluates last") {
    withSQLConf("spark.sql.ansi.enabled" -> "true") {
      val numbers =
        "SELECT *, s RLIKE '[0-9]+' AS num, slow(i) = 1 AS own, i > 1 AS large FROM raw"
      val plain = "SELECT *, true AS num, true AS own, true AS large FROM valid"
      for {
        (column, safe) <- Seq("num" -> false, "own" -> false, "large" -> true)
        from <- Seq(s"($numbers)", s"($plain UNION ALL $numbers)")
      } {
        val plan = sql(s"SELECT $cast FROM $from WHERE $column").queryExecution.analyzed
        assert(SafeToPush(plan, plan.output.head) === safe, s"$column, $from")
      }
      val named = s"WITH n AS ($numbers) SELECT $cast FROM n WHERE num"
      val plan = sql(named).queryExecution.analyzed
      assert(!SafeToPush(plan, plan.output.head))
    }
  }

  test("plain columns, and casts of all rows") {
    withSQLConf("spark.sql.ansi.enabled" -> "true") {
      for (safe <- Seq(
          s"SELECT $cast FROM raw",
          s"SELECT $cast FROM raw WHERE s RLIKE '[0-9]+'",
          s"SELECT $cast, count(*) FROM raw GROUP BY s",
          "SELECT i AS k, count(*) FROM raw GROUP BY i HAVING count(*) > 1",
          s"SELECT k FROM (SELECT $cast FROM raw) JOIN valid ON k = i",
          s"SELECT $cast FROM raw UNION ALL SELECT i FROM valid",
          "SELECT raw.i, CAST(s AS INT) FROM raw JOIN valid USING (s)",
          "SELECT CAST(raw.i AS LONG) AS k FROM raw JOIN valid USING (s)",
          "SELECT max(CAST(s AS INT)) AS k, s FROM raw JOIN valid USING (s) GROUP BY s",
          s"WITH x AS (SELECT $cast FROM raw) SELECT * FROM x JOIN x AS y USING (k)"))
        assert(isSafe(safe), safe)
    }
    withSQLConf("spark.sql.ansi.enabled" -> "false") {
      assert(isSafe(s"SELECT $cast FROM raw JOIN valid USING (s)"))
      assert(!isSafe("SELECT slow(raw.i) AS k FROM raw JOIN valid USING (s)"))
    }
  }
}
