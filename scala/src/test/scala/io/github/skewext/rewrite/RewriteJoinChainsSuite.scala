package io.github.skewext.rewrite

import io.github.skewext.plan.{MultiFullJoin, RewriteReason}

import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf

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

  // Spark begins with the plan of a CTE anew when there are other predicates on it to push down: it
  // would go on for ever if these were about columns that are made anew each time.
  test("a CTE that is not a part of the query") {
    def asked(joins: String) =
      s"""WITH x AS (SELECT k, v0, rand() AS r FROM t0 $joins)
         |SELECT k, v0, r >= 0 AS r FROM x WHERE k > 1
         |UNION ALL SELECT k, v0, r < 0 AS r FROM x WHERE k <= 3 AND v0 > 0""".stripMargin
    checkRewritten(asked("FULL JOIN t1 USING (k) FULL JOIN t2 USING (k)"), 3)
    val noBroadcast = SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1"
    withSQLConf(MinInputs -> "2", Mixed -> "true", noBroadcast) {
      checkRewritten(asked("JOIN t1 USING (k)"), 2)
    }
  }

  // Spark's optimizer takes away aliases that are of no use to it below a node that is not its own.
  test("a table that hides its columns behind aliases, beside itself") {
    withTempView("computed") {
      spark
        .sql("SELECT int(a) AS k, int(b) AS w FROM VALUES (1, 1), (2, 2), (null, 3) AS t(a, b)")
        .coalesce(1)
        .createOrReplaceTempView("computed")
      val renamed = "(SELECT r.k AS k, r.w AS w FROM computed AS r)"
      for {
        excluded <- Seq("", ConvertToLocalRelation.ruleName)
        (first, last) <- Seq(renamed -> "computed", "computed" -> renamed)
      } withSQLConf(SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> excluded) {
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
      }
    }
  }

  test("two columns of an input that are one") {
    withSQLConf(MinInputs -> "2", Mixed -> "true", "spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      for (shown <- Seq("a.l AS x", "a.l AS x, v2, b.l AS y, v0")) {
        checkRewritten(
          s"""SELECT $shown FROM t0 a RIGHT JOIN t1 b ON a.l = b.l
             |RIGHT JOIN t2 c ON b.k = c.k AND c.l = b.l WHERE v0 IS NOT NULL""".stripMargin,
          2,
          2)
      }
    }
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

  test("groups by coalesced keys, and by some of them") {
    val from =
      """FROM t0 a FULL JOIN t1 b ON a.k = b.k FULL JOIN t2 c ON coalesce(a.k, b.k) = c.k"""
    for (key <- Seq(
        "coalesce(a.k, b.k, c.k)",
        "coalesce(c.k, b.k, a.k)",
        "coalesce(a.k, b.k)",
        "coalesce(a.k, a.k)",
        "coalesce(a.k, b.k, n2)",
        "coalesce(a.k + 1, b.k)",
        "coalesce(a.k, 7)")) withClue(key) {
      val df =
        checkRewritten(s"SELECT $key, count(*), max(v0), min(v2) $from GROUP BY $key", 3)
      // The whole key is what the rows are partitioned by.
      val isWhole = key.contains("a.k") && key.contains("b.k") && key.contains("c.k")
      assert(exchanges(df).size === (if (isWhole) 3 else 4))
    }
  }

  test("equal keys that are not the same") {
    withTempView("d0", "d1", "d2") {
      table("k, v0", "(0.0d, 'a'), (double('NaN'), 'b'), (1.0d, 'c'), (null, 'd')")
        .createOrReplaceTempView("d0")
      table("k, v1", "(-0.0d, 'a'), (double('NaN'), 'b'), (2.0d, 'c')").createOrReplaceTempView(
        "d1")
      table("k, v2", "(0.0d, 'a'), (2.0d, 'b'), (-0.0d, 'c')").createOrReplaceTempView("d2")
      val from = "d0 a FULL JOIN d1 b ON a.k = b.k FULL JOIN d2 c ON coalesce(a.k, b.k) = c.k"
      for (key <- Seq(
          "a.k",
          "b.k",
          "coalesce(a.k, b.k, c.k)",
          "coalesce(c.k, b.k, a.k)",
          "coalesce(b.k, a.k)"))
        checkRewritten(s"SELECT string($key), v0, v1, v2 FROM $from", 3)
      checkRewritten(
        """SELECT string(s.k), v0, v1, v2 FROM (SELECT struct(k) AS s, v0 FROM d0)
          |FULL JOIN (SELECT struct(k) AS s, v1 FROM d1) USING (s)
          |FULL JOIN (SELECT struct(k) AS s, v2 FROM d2) USING (s)""".stripMargin,
        3)
    }
  }

  test("keys of char(n)") {
    withTable("c3", "c5", "c5b") {
      Seq("c3" -> "x", "c5" -> "y", "c5b" -> "z").foreach { case (name, value) =>
        sql(s"CREATE TABLE $name (k CHAR(${name(1)}), $value INT) USING parquet")
        sql(s"INSERT INTO $name VALUES ('a', 1), ('${name.take(2)}', 2)")
      }
      // Spark pads where it compares two columns, and not where it compares a coalesced key.
      checkLeft(
        "SELECT length(k), x, y, z FROM c3 FULL JOIN c5 USING (k) FULL JOIN c5b USING (k)",
        RewriteReason.KeyExpression)
      checkRewritten(
        "SELECT length(k), x, y, z FROM c5 FULL JOIN c5b USING (k) FULL JOIN c3 USING (k)",
        3)
    }
  }

  test("long chains") {
    val n = 40
    val using = (1 until n).map(i => s"FULL JOIN (SELECT k, v1 AS w$i FROM t1) USING (k)")
    val plan = sql(s"SELECT * FROM t0 ${using.mkString(" ")}").queryExecution.optimizedPlan
    assert(plan.collect { case join: MultiFullJoin => join.children.size } === Seq(n))
  }

  private def roles(query: String): Seq[String] =
    operator(sql(query)).roles.map(_.name)

  test("joins that want the rows of a full outer join") {
    val full = "(SELECT k, v0, v1 FROM t0 FULL JOIN t1 USING (k))"
    val left = s"SELECT * FROM t2 LEFT JOIN $full USING (k)"
    checkRewritten(left, 3)
    assert(roles(left) === Seq("required", "optional", "optional"))
    val right = s"SELECT * FROM $full RIGHT JOIN t2 USING (k)"
    checkRewritten(right, 3)
    assert(roles(right) === Seq("optional", "optional", "required"))
    val anti = s"SELECT * FROM t2 LEFT ANTI JOIN $full USING (k)"
    checkRewritten(anti, 3)
    assert(roles(anti) === Seq("required", "excluded", "excluded"))
    checkRewritten(
      s"""SELECT k, e, v2 FROM t2 LEFT JOIN
         |(SELECT coalesce(a.k, b.k) AS k, coalesce(v0, '-') AS e FROM t0 a FULL JOIN t1 b ON a.k = b.k)
         |USING (k)""".stripMargin,
      3)
    // Not these: a row of the full outer join has to be there, from whichever input.
    checkRewritten(s"SELECT * FROM $full LEFT JOIN t2 USING (k)")
    checkRewritten(s"SELECT * FROM $full JOIN t2 USING (k)")
  }

  test("joins of other types on one key") {
    withSQLConf(Mixed -> "true", "spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      def check(query: String, expected: String*): Unit = withClue(query) {
        checkRewritten(query, expected.size)
        assert(roles(query) === expected)
      }
      check(
        "SELECT * FROM t0 JOIN t1 USING (k) JOIN t2 USING (k)",
        "required",
        "required",
        "required")
      check(
        "SELECT a.k, b.k, c.k, v2 FROM t0 a JOIN t1 b ON a.k = b.k JOIN t2 c ON b.k = c.k",
        "required",
        "required",
        "required")
      check(
        "SELECT a.k, b.k, c.k, v2 FROM t0 a LEFT JOIN t1 b ON a.k = b.k LEFT JOIN t2 c ON a.k = c.k",
        "required",
        "optional",
        "optional")
      check(
        """SELECT a.k, c.k, v2 FROM t0 a LEFT ANTI JOIN t3 d ON a.k = d.k LEFT JOIN t1 b ON a.k = b.k
          |JOIN t2 c ON a.k = c.k LEFT JOIN t4 e ON c.k = e.k""".stripMargin,
        "required",
        "excluded",
        "optional",
        "required",
        "optional")
      check(
        """SELECT * FROM (SELECT k, 1 AS one, v0 FROM t0 LEFT JOIN t1 USING (k))
          |JOIN (SELECT k, coalesce(v3, '-') AS e FROM t2 LEFT JOIN t3 USING (k)) USING (k)""".stripMargin,
        "required",
        "optional",
        "required",
        "optional")
      // The key of an optional input is not there in every row.
      checkRewritten(
        "SELECT a.k, c.k FROM t0 a LEFT JOIN t1 b ON a.k = b.k LEFT JOIN t2 c ON b.k = c.k")
      // What is optional as a whole is one input.
      checkRewritten(
        "SELECT * FROM t0 FULL JOIN (SELECT * FROM t1 JOIN t2 USING (k) JOIN t3 USING (k)) USING (k)",
        3)
    }
  }
}
