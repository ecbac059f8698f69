package io.github.skewext.rewrite

import org.apache.spark.sql.internal.SQLConf

/** Joins of other types beside full outer joins on the same key. */
class RewriteChainRolesSuite extends RewriteTest {

  private def roles(query: String): Seq[String] =
    operator(sql(query)).roles.map(_.name)

  test("adds left, right and anti joins with a full outer join to the chain", Slow) {
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
    // Not rewritten: roles cannot require a row of the full outer join, whichever input it is from.
    checkRewritten(s"SELECT * FROM $full LEFT JOIN t2 USING (k)")
    checkRewritten(s"SELECT * FROM $full JOIN t2 USING (k)")
  }

  test("a cached table that remains alone has its own columns") {
    {
      val cached = sql("SELECT k, l, v0 FROM t0").persist()
      try {
        cached.createOrReplaceTempView("cached")
        sql("SELECT * FROM VALUES (1, 'x') AS b(k, l)").createOrReplaceTempView("one")
        val df = checkRewritten(
          """SELECT count(DISTINCT a.l) AS n FROM cached a FULL JOIN one b USING (k, l)
            |FULL JOIN one c USING (k, l) WHERE a.k <> 5 GROUP BY k""".stripMargin)
        assert(df.collect().nonEmpty)
        assert(joins(df).isEmpty)
        df.queryExecution.executedPlan.canonicalized
      } finally cached.unpersist()
    }
  }

  test("leaves chains of inner, left and anti joins to Spark, whose tables are shuffled once") {
    for (query <- Seq(
        "SELECT * FROM t0 JOIN t1 USING (k) JOIN t2 USING (k)",
        "SELECT a.k, c.k, v2 FROM t0 a LEFT JOIN t1 b ON a.k = b.k LEFT JOIN t2 c ON a.k = c.k",
        "SELECT a.k FROM t0 a LEFT ANTI JOIN t3 d ON a.k = d.k LEFT JOIN t1 b ON a.k = b.k"))
      checkLeft(query, RewriteReason.NoShuffleSaved)
    // A join that is optional as a whole is one input.
    checkRewritten(
      """SELECT * FROM t0 FULL JOIN (SELECT * FROM t1 JOIN t2 USING (k)) USING (k)
        |FULL JOIN t3 USING (k)""".stripMargin,
      3)
  }

  test("separates inputs with the rows of one query if one of them becomes a larger join") {
    withTempView("rows", "more") {
      sql(
        "SELECT CAST(a AS string) AS k, CAST(b AS string) AS j, CAST(c AS int) AS n FROM VALUES " +
          "('A', 'x', 0), ('a t', 'A', 7), (null, 'a text', 2), (null, '', 1), (null, 'a', 1) AS t(a, b, c)")
        .coalesce(1)
        .createTempView("rows")
      sql("SELECT CAST(a AS string) AS k FROM VALUES (null), ('A'), ('a t'), ('A') AS t(a)")
        .coalesce(1)
        .createTempView("more")
      // Literal rows become a relation with the ids of the query's columns.
      withSQLConf(SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> "") {
        val df = checkRewritten(
          """SELECT r5.k AS k FROM rows AS r4 FULL JOIN (
            |  SELECT r2.k AS k, r1.j AS j
            |  FROM rows AS r1 FULL JOIN more AS r2 ON r1.k = r2.k
            |  FULL JOIN rows AS r3 ON coalesce(r1.k, r2.k) = r3.k) AS r5 ON r4.k = r5.k
            |FULL JOIN more AS r6 ON coalesce(r4.k, r5.k) = r6.k
            |WHERE coalesce(r4.j, r5.j, 'b') >= 'a'""".stripMargin,
          3,
          3)
        assert(df.count() > 0)
      }
    }
  }
}
