package io.github.skewext.rewrite

import io.github.skewext.join.MultiFullJoin

import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf

/** Chains and trees of full outer joins in all forms, which become one operator. */
class RewriteJoinChainsSuite extends RewriteTest {

  test("rewrites USING and NATURAL joins of up to eight inputs", Slow) {
    for (n <- Seq(3, 4, 8)) {
      val using = (1 until n).map(i => s"FULL JOIN t$i USING (k)").mkString(" ")
      checkRewritten(s"SELECT k, ${(0 until n).map(i => s"v$i").mkString(", ")} FROM t0 $using", n)
    }
    checkRewritten("SELECT * FROM t0 FULL JOIN t1 USING (k)")
    checkRewritten(
      """SELECT * FROM (SELECT k, v0 FROM t0) NATURAL FULL JOIN (SELECT k, v1 FROM t1)
        |NATURAL FULL OUTER JOIN (SELECT k, v2 FROM t2)""".stripMargin,
      3)
  }

  test("returns all columns of a chain") {
    checkRewritten("SELECT * FROM t0 FULL JOIN t1 USING (k) FULL JOIN t2 USING (k)", 3)
    checkRewritten("SELECT * FROM t0 FULL JOIN t1 USING (k, l) FULL JOIN t2 USING (k, l)", 3)
    checkRewritten(
      "SELECT * FROM t0 a FULL JOIN t1 b ON a.k = b.k FULL JOIN t2 c ON coalesce(a.k, b.k) = c.k",
      3)
  }

  test("rewrites chains of DataFrame.join") {
    val frames = (0 until 4).map(i => spark.table(s"t$i"))
    checkRewritten(frames.reduce(_.join(_, Seq("k"), "full")), 4)
    checkRewritten(frames.reduce(_.join(_, Seq("l", "k"), "outer")), 4)
    checkRewritten(frames.take(3).reduce(_.join(_, Seq("k"), "fullouter")).groupBy("k").count(), 3)
  }

  test("rewrites bushy trees") {
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

  test("keeps columns that are computed between joins", Slow) {
    // Null for nulls, a constant, over both inputs, over the key, and a condition that is never
    // null.
    for (e <- Seq(
        "upper(v0)",
        "'both'",
        "coalesce(v0, v1, 'none')",
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

  test("rewrites CTEs, views and self-joins", Slow) {
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

  // Spark starts again from the plan of a CTE if there are other predicates to push into it. It
  // would never finish if these were on columns that each rewrite creates again.
  test("rewrites a CTE that Spark does not inline") {
    def asked(joins: String) =
      s"""WITH x AS (SELECT k, v0, rand() AS r FROM t0 $joins)
         |SELECT k, v0, r >= 0 AS r FROM x WHERE k > 1
         |UNION ALL SELECT k, v0, r < 0 AS r FROM x WHERE k <= 3 AND v0 > '0'""".stripMargin
    checkRewritten(asked("FULL JOIN t1 USING (k) FULL JOIN t2 USING (k)"), 3)
  }

  test("rewrites a CTE with unused columns, and leaves one whose joins filters change", Slow) {
    // A regression: another value replaced the random number, or Spark did not find a column.
    withSQLConf(
      SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1",
      SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> "") {
      for (where <- Seq("", "WHERE x.k >= 1 AND y.k >= 1")) {
        checkRewritten(
          s"""WITH w AS (
             |  SELECT *, rand() AS r
             |  FROM (SELECT a.k, a.v0 FROM t0 a LEFT JOIN (t1 FULL JOIN t2 USING (k)) USING (k)))
             |SELECT x.k, x.r >= 0 AND x.r < 1 AS ok, y.r >= 0 AND y.r < 1 AS also
             |FROM w x JOIN w y ON x.k = y.k LEFT SEMI JOIN t3 d ON x.k = d.k $where""".stripMargin,
          3)
      }
      checkRewritten("""WITH w AS (
          |  SELECT b.k FROM t0 a FULL JOIN t1 b ON a.k = b.k AND a.l = b.l
          |  LEFT JOIN t2 c ON b.k = c.k AND b.l = c.l WHERE rand() >= 0)
          |SELECT x.k FROM w x LEFT JOIN w y ON x.k = y.k LEFT SEMI JOIN t3 d ON x.k = d.k""".stripMargin)
    }
  }

  // Spark's optimizer removes redundant aliases below nodes other than its own.
  test("joins a table with itself if aliases hide its columns", Slow) {
    withTempView("computed") {
      spark
        .sql("SELECT int(a) AS k, int(b) AS w FROM VALUES (1, 1), (2, 2), (null, 3) AS t(a, b)")
        .coalesce(1)
        .createOrReplaceTempView("computed")
      val renamed = "(SELECT r.k AS k, r.w AS w FROM computed AS r)"
      val cases = for {
        excluded <- Seq("", ConvertToLocalRelation.ruleName)
        sides <- Seq(renamed -> "computed", "computed" -> renamed)
      } yield (excluded, sides)
      for ((excluded, (first, last)) <- covering(cases))
        withSQLConf(SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> excluded) {
          checkRewritten(
            s"""SELECT a.w AS w1, c.w AS w2 FROM $first AS a FULL JOIN t1 b ON a.k = b.k
             |FULL JOIN $last AS c ON c.k = coalesce(a.k, b.k)
             |LEFT ANTI JOIN computed d ON a.k = d.k""".stripMargin,
            3)
          val two =
            "(SELECT coalesce(a.k, b.k) AS k, a.w FROM computed a FULL JOIN t1 b ON a.k = b.k)"
          val aliased =
            "(SELECT coalesce(a.k, b.k) AS k, a.w AS u FROM computed a FULL JOIN t1 b ON a.k = b.k)"
          for ((left, right) <- Seq(aliased -> "computed", "computed" -> aliased)) {
            val (u, w) = if (left == aliased) ("x.u", "y.w") else ("y.u", "x.w")
            checkRewritten(
              s"SELECT $u, $w, coalesce($u, $w) FROM $left x FULL JOIN $right y ON x.k = y.k",
              3)
          }
          checkRewritten(
            s"SELECT x.u, y.w, coalesce(x.u, y.w) FROM $aliased x FULL JOIN $two y ON x.k = y.k",
            4)
          // The second column has the id that the first one has below its alias.
          val sameName = aliased.replace("AS u", "AS w")
          // So has its key, if it is y.w.
          for {
            sides <- Seq(s"$sameName x FULL JOIN computed y", s"computed y FULL JOIN $sameName x")
            key <- Seq("k", "w")
          } checkRewritten(
            s"""SELECT x.w AS w1, y.w AS w2, z.v2 FROM $sides ON x.k = y.$key
               |LEFT JOIN t2 z ON x.w = z.n2 AND y.w < 3""".stripMargin,
            3)
          // A key that each input shows as it is.
          val shown =
            "(SELECT coalesce(a.k, b.k) AS kk, a.k AS k FROM " +
              "(SELECT double(k) AS k FROM computed WHERE w > 1) a FULL JOIN t1 b ON a.k = b.k)"
          checkRewritten(
            s"""SELECT DISTINCT x.k AS k1, y.k AS k2 FROM $shown x
               |FULL JOIN (SELECT double(k) AS k FROM computed) y ON x.kk = y.k""".stripMargin,
            3)
        }
    }
  }

  test("rewrites a branch of a union that shows one key in several columns of one name") {
    val chain = "FROM t0 a FULL JOIN t1 b ON a.k = b.k FULL JOIN t2 c ON coalesce(a.k, b.k) = c.k"
    val columns = Seq(
      "coalesce(a.k, b.k, c.k) AS k, coalesce(c.k, b.k, a.k) AS k" -> "",
      "a.k, coalesce(a.k, b.k) AS k" -> "")
    withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1") {
      for ((shown, where) <- columns)
        checkRewritten(s"SELECT 0 AS x, 0 AS y UNION ALL SELECT $shown $chain $where", 3)
    }
  }

  test("accepts inputs of any kind, and any operators above", Slow) {
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

  test("adds joins by name to a chain") {
    val named =
      fullJoin("k")(spark.table("t0").select("k", "v0"), spark.table("t1").select("k", "v1"))
    checkRewritten(named.join(spark.table("t2"), Seq("k"), "full"), 3)
    checkRewritten(fullJoin("k")(named, spark.table("t2").select("k", "v2")), 3)
  }

  test("rewrites a chain of 40 inputs") {
    val n = 40
    val using = (1 until n).map(i => s"FULL JOIN (SELECT k, v1 AS w$i FROM t1) USING (k)")
    val plan = sql(s"SELECT * FROM t0 ${using.mkString(" ")}").queryExecution.optimizedPlan
    assert(plan.collect { case join: MultiFullJoin => join.children.size } === Seq(n))
  }

  test("a lazy list of columns, and NOT IN of no rows") {
    val chain = sql("SELECT * FROM t0 FULL JOIN t1 USING (k) FULL JOIN t2 USING (k)")
    val columns = Seq("k", "v0", "n1", "v2").iterator.map(col).toSeq
    checkRewritten(chain.select(columns: _*), 3)
    checkRewritten(
      "SELECT k, v0, n1, v2 FROM t0 FULL JOIN t1 USING (k) FULL JOIN t2 USING (k) " +
        "WHERE n1 NOT IN (SELECT n3 FROM t3 WHERE n3 > 1000)",
      3)
  }
}
