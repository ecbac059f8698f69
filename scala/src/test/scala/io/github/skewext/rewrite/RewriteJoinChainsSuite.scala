package io.github.skewext.rewrite

import org.apache.spark.sql.functions._

/** Chains and trees of full outer joins that become one operator, however they are written. */
class RewriteJoinChainsSuite extends RewriteTest {

  test("USING and NATURAL, two to eight inputs") {
    for (n <- Seq(3, 4, 8)) {
      val using = (1 until n).map(i => s"FULL JOIN t$i USING (k)").mkString(" ")
      checkRewritten(s"SELECT k, ${(0 until n).map(i => s"v$i").mkString(", ")} FROM t0 $using", n)
    }
    checkRewritten("SELECT * FROM t0 FULL JOIN t1 USING (k)")
    withSQLConf(MinInputs -> "2") {
      checkRewritten("SELECT * FROM t0 FULL JOIN t1 USING (k)", 2)
    }
    withSQLConf(MinInputs -> "4") {
      checkRewritten("SELECT k, v1 FROM t0 FULL JOIN t1 USING (k) FULL JOIN t2 USING (k)")
    }
    checkRewritten(
      """SELECT * FROM (SELECT k, v0 FROM t0) NATURAL FULL JOIN (SELECT k, v1 FROM t1)
        |NATURAL FULL OUTER JOIN (SELECT k, v2 FROM t2)""".stripMargin,
      3)
  }

  test("all columns") {
    checkRewritten("SELECT * FROM t0 FULL JOIN t1 USING (k) FULL JOIN t2 USING (k)", 3)
    checkRewritten("SELECT * FROM t0 FULL JOIN t1 USING (k, l) FULL JOIN t2 USING (k, l)", 3)
    checkRewritten(
      "SELECT * FROM t0 a FULL JOIN t1 b ON a.k = b.k FULL JOIN t2 c ON coalesce(a.k, b.k) = c.k",
      3)
  }

  test("DataFrame.join") {
    val frames = (0 until 4).map(i => spark.table(s"t$i"))
    checkRewritten(frames.reduce(_.join(_, Seq("k"), "full")), 4)
    checkRewritten(frames.reduce(_.join(_, Seq("l", "k"), "outer")), 4)
    checkRewritten(frames.take(3).reduce(_.join(_, Seq("k"), "fullouter")).groupBy("k").count(), 3)
  }

  test("conditions with coalesce in any order and nesting") {
    for (condition <- Seq(
        "coalesce(a.k, b.k) = c.k",
        "c.k = coalesce(b.k, a.k)",
        "coalesce(a.k, coalesce(b.k, a.k)) = c.k",
        "coalesce(coalesce(a.k, b.k), a.k, b.k) = c.k",
        "coalesce(a.k, b.k) = c.k AND c.k = coalesce(b.k, a.k)",
        "nvl(a.k, b.k) = c.k",
        "if(a.k IS NULL, b.k, a.k) = c.k",
        "if(b.k IS NOT NULL, b.k, a.k) = c.k",
        "CASE WHEN a.k IS NULL THEN b.k ELSE a.k END = c.k")) withClue(condition) {
      checkRewritten(
        s"""SELECT a.k, b.k, c.k, coalesce(a.k, b.k, c.k), v0, v1, v2
           |FROM t0 a FULL JOIN t1 b ON a.k = b.k FULL JOIN t2 c ON $condition""".stripMargin,
        3)
    }
    checkRewritten(
      """SELECT coalesce(d.k, c.k, b.k, a.k) AS k, v0, v1, v2, v3
        |FROM t0 a FULL JOIN t1 b ON a.k = b.k FULL JOIN t2 c ON coalesce(b.k, a.k) = c.k
        |FULL JOIN t3 d ON d.k = coalesce(c.k, coalesce(a.k, b.k))""".stripMargin,
      4)
  }

  test("coalesced keys of subqueries") {
    checkRewritten(
      """SELECT coalesce(x.key, c.k) AS key, v0, v1, v2 FROM (
        |  SELECT coalesce(a.k, b.k) AS key, v0, v1 FROM t0 a FULL OUTER JOIN t1 b ON a.k = b.k
        |) x FULL OUTER JOIN t2 c ON x.key = c.k""".stripMargin,
      3)
    checkRewritten(
      """SELECT x.key, c.k, v0, v1, v2 FROM (
        |  SELECT coalesce(b.k, a.k) AS key, v0, v1 FROM t0 a FULL OUTER JOIN t1 b ON a.k = b.k
        |) x FULL OUTER JOIN t2 c ON x.key = c.k""".stripMargin,
      3)
  }

  test("bushy trees") {
    checkRewritten(
      """SELECT * FROM (SELECT k, v0, v1 FROM t0 FULL JOIN t1 USING (k))
        |FULL JOIN (SELECT k, v2, v3 FROM t2 FULL JOIN t3 USING (k)) USING (k)""".stripMargin,
      4)
    checkRewritten(
      """SELECT * FROM t4 FULL JOIN (
        |  SELECT k, l, v0, v1, v2, v3 FROM (SELECT k, l, v0, v1 FROM t0 FULL JOIN t1 USING (k, l))
        |  FULL JOIN (SELECT l, k, v2, v3 FROM t2 FULL JOIN t3 USING (l, k)) USING (l, k)
        |) USING (k, l)""".stripMargin,
      5)
  }

  test("composite keys, listed in any order") {
    checkRewritten(
      """SELECT a.k, a.l, b.k, b.l, c.k, c.l, v0, v1, v2 FROM t0 a
        |FULL JOIN t1 b ON a.k = b.k AND a.l = b.l
        |FULL JOIN t2 c ON c.l = coalesce(b.l, a.l) AND coalesce(a.k, b.k) = c.k""".stripMargin,
      3)
  }

  test("columns computed in between") {
    // Null on nulls; a constant; of both inputs; of the key; a condition that is never null.
    for (e <- Seq(
        "upper(v0)",
        "'both'",
        "coalesce(v0, v1, 'none')",
        "concat(v0, v1)",
        "k + 1",
        "coalesce(k, -1)",
        "k IS NULL",
        "v0 IS NULL",
        "struct(v0, v1)",
        "n0 + n1 > 10")) withClue(e) {
      checkRewritten(
        s"""SELECT k, v0, e, v2 FROM (SELECT k, v0, $e AS e FROM t0 FULL JOIN t1 USING (k))
           |FULL JOIN t2 USING (k)""".stripMargin,
        3)
    }
    checkRewritten(
      """SELECT k, e, f, v1, v2 FROM (
        |  SELECT k, v1, e, concat(e, 'f') AS f
        |  FROM (SELECT k, v1, coalesce(v0, '-') AS e FROM t0 FULL JOIN t1 USING (k)))
        |FULL JOIN t2 USING (k) FULL JOIN (SELECT k, 1 AS one FROM t3 FULL JOIN t4 USING (k)) USING (k)
        |""".stripMargin,
      5)
  }

  test("renames, and keys of inputs") {
    checkRewritten(
      """SELECT x.first, x.second, c.k, key2 FROM (
        |  SELECT a.k AS first, b.k AS second, coalesce(a.k, b.k) AS key, coalesce(b.k, a.k) AS key2
        |  FROM t0 a FULL JOIN t1 b ON a.k = b.k
        |) x FULL JOIN t2 c ON coalesce(first, second) = c.k""".stripMargin,
      3)
  }

  test("keys that are expressions") {
    checkRewritten(
      """SELECT a.k, a.l, b.k, v1, v2 FROM t0 a FULL JOIN t1 b ON a.k + 1 = b.k
        |FULL JOIN t2 c ON coalesce(a.k + 1, b.k) = c.k""".stripMargin,
      3)
    checkRewritten(
      """SELECT a.l, b.l, c.l, v1, v2 FROM t0 a FULL JOIN t1 b ON upper(a.l) = upper(b.l)
        |FULL JOIN t2 c ON coalesce(upper(b.l), upper(a.l)) = upper(c.l)""".stripMargin,
      3)
  }

  test("casts that keep the key's values") {
    checkRewritten(
      """SELECT k, v0, v1, v2 FROM t0 FULL JOIN t1 USING (k)
        |FULL JOIN (SELECT cast(k AS bigint) AS k, v2 FROM t2) USING (k)""".stripMargin,
      3)
    checkRewritten(
      """SELECT x.k, a, b, c.k, d.k, coalesce(x.k, c.k, d.k), v0, v2, v3 FROM (
        |  SELECT coalesce(a.k, b.k) AS k, a.k AS a, b.k AS b, v0 FROM t0 a FULL JOIN t1 b ON a.k = b.k
        |) x FULL JOIN (SELECT cast(k AS bigint) AS k, v2 FROM t2) c ON x.k = c.k
        |FULL JOIN (SELECT cast(k AS decimal(20, 0)) AS k, v3 FROM t3) d ON coalesce(x.k, c.k) = d.k
        |""".stripMargin,
      4)
    checkRewritten(
      """SELECT k, v0, v1, v2 FROM t0 FULL JOIN (SELECT cast(k AS bigint) AS k, v1 FROM t1) USING (k)
        |FULL JOIN t2 USING (k)""".stripMargin,
      3)
  }

  test("CTEs, views and self-joins") {
    checkRewritten(
      """WITH x AS (SELECT k, v0, v1 FROM t0 FULL JOIN t1 USING (k))
        |SELECT * FROM x FULL JOIN t2 USING (k)""".stripMargin,
      3)
    checkRewritten(
      """WITH x AS (SELECT k, v0, v1 FROM t0 FULL JOIN t1 USING (k))
        |SELECT k, y.v0, z.v1 FROM x y FULL JOIN x z USING (k) FULL JOIN t2 USING (k)""".stripMargin,
      5)
    withTempView("w") {
      sql("CREATE TEMPORARY VIEW w AS SELECT k, v0, v1 FROM t0 FULL JOIN t1 USING (k)")
      checkRewritten("SELECT * FROM w FULL JOIN t2 USING (k)", 3)
    }
    checkRewritten("SELECT * FROM t0 a FULL JOIN t0 b USING (k) FULL JOIN t0 c USING (k)", 3)
    val t0 = spark.table("t0")
    checkRewritten(t0.join(t0, Seq("k"), "full").join(t0, Seq("k"), "full"), 3)
    val renamed = t0.select(col("k"), col("v0").as("w"))
    checkRewritten(
      renamed.join(renamed, Seq("k"), "full").join(renamed.where("k > 1"), Seq("k"), "full"),
      3)
  }

  test("inputs of any kind, and what is above") {
    checkRewritten(
      """SELECT k, s, m, v2 FROM (SELECT k, sum(n0) AS s FROM t0 GROUP BY k)
        |FULL JOIN (SELECT k, max(v1) AS m FROM t1 GROUP BY k) USING (k)
        |FULL JOIN (SELECT * FROM t2 ORDER BY k LIMIT 4) USING (k)""".stripMargin,
      3)
    val chain = "t0 FULL JOIN t1 USING (k) FULL JOIN t2 USING (k)"
    checkRewritten(s"SELECT k, count(*), sum(n1) FROM $chain GROUP BY k", 3)
    checkRewritten(s"SELECT DISTINCT k FROM $chain", 3)
    checkRewritten(s"SELECT count(*) FROM $chain", 3)
    checkRewritten(s"SELECT k, v0 FROM $chain WHERE k > 2 AND v2 IS NOT NULL", 3)
    checkRewritten(s"SELECT k, rand() < 2 FROM $chain WHERE k > 2", 3)
    checkRewritten(s"SELECT * FROM (SELECT k, v0 FROM $chain) JOIN t3 USING (k)", 3)
    checkRewritten(s"SELECT k FROM $chain UNION ALL SELECT k FROM $chain", 3, 3)
    checkRewritten(
      s"SELECT * FROM (SELECT k, count(*) AS n FROM $chain GROUP BY k) FULL JOIN ($chain) USING (k)" +
        " FULL JOIN t5 USING (k)",
      5,
      3)
  }

  test("joins asked for by name are part of a chain") {
    val named =
      fullJoin("k")(spark.table("t0").select("k", "v0"), spark.table("t1").select("k", "v1"))
    checkRewritten(named.join(spark.table("t2"), Seq("k"), "full"), 3)
    checkRewritten(fullJoin("k")(named, spark.table("t2").select("k", "v2")), 3)
  }
}
