package io.github.skewext.rewrite

import io.github.skewext.internal.BuildInfo

import org.apache.spark.sql.functions.expr

/** Keys of chains of full outer joins, in all forms and types. */
class RewriteChainKeysSuite extends RewriteTest {

  test("recognizes coalesced keys in any order and nesting", Slow) {
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

  test("recognizes coalesced keys of subqueries") {
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

  test("recognizes composite keys in any order") {
    checkRewritten(
      """SELECT a.k, a.l, b.k, b.l, c.k, c.l, v0, v1, v2 FROM t0 a
        |FULL JOIN t1 b ON a.k = b.k AND a.l = b.l
        |FULL JOIN t2 c ON c.l = coalesce(b.l, a.l) AND coalesce(a.k, b.k) = c.k""".stripMargin,
      3)
    // Key columns of one type. The query returns one if the other is null.
    def numbers(i: Int) = s"(SELECT k, n$i % 3 AS m, v$i FROM t$i)"
    checkRewritten(
      s"""SELECT coalesce(k, m), v0, v1, v2 FROM ${numbers(0)}
         |FULL JOIN ${numbers(1)} USING (k, m) FULL JOIN ${numbers(2)} USING (k, m)""".stripMargin,
      3)
  }

  test("compares one key column with several columns of the other side", Slow) {
    // Rows whose columns differ match nothing, in each role.
    def several(i: Int) = s"(SELECT k, n$i % 6 AS m, l, v$i FROM t$i) t$i"
    val shown = "t0.k, t1.k, t2.k, m, v0, v1, v2"
    def three(on: String) =
      s"SELECT $shown FROM t0 FULL JOIN t1 ON t0.k = t1.k FULL JOIN ${several(2)} ON $on"
    val whole = "coalesce(t0.k, t1.k)"
    checkRewritten(three(s"$whole = t2.k AND $whole = t2.m"), 3)
    checkRewritten(three(s"t2.m = $whole AND $whole = t2.k AND $whole = t2.k + 0"), 3)
    // Each column of the key is compared twice.
    checkRewritten(
      s"""SELECT t0.k, t0.l, t1.k, t2.k, t2.l, v0, v1, v2 FROM t0
         |FULL JOIN t1 ON t0.k = t1.k AND t0.l = t1.l
         |FULL JOIN ${several(2)} ON coalesce(t0.k, t1.k) = t2.k AND coalesce(t0.l, t1.l) = t2.l
         |AND coalesce(t1.k, t0.k) = t2.m AND coalesce(t0.l, t1.l) = lower(t2.l)""".stripMargin,
      3)
    // A row of t1 that matches nothing has no whole key, but coalesce(t0.k, t1.k) has a value.
    val first = s"FROM t0 FULL JOIN ${several(1)} ON t0.k = t1.k AND t0.k = m"
    checkLeft(
      s"SELECT t0.k, t1.k, t2.k, m, v0, v1, v2 $first FULL JOIN t2 ON coalesce(t0.k, t1.k) = t2.k",
      RewriteReason.KeyExpression)
    // Neither has a tree one value, of whose key two columns are compared with one.
    checkLeft(
      s"""SELECT a.k, a.m, b.k, v0, v1, v2 FROM ${several(0).stripSuffix("t0")} a
         |FULL JOIN ${several(1).stripSuffix("t1")} b ON a.k = b.k AND a.m = b.m
         |FULL JOIN t2 c ON coalesce(a.k, b.k) = c.k AND coalesce(a.m, b.m) = c.k""".stripMargin,
      RewriteReason.DifferentKeys)
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      // The chain is on the left of the join that compares m, or on its right.
      for (join <- Seq("FULL", "LEFT", "RIGHT", "LEFT ANTI"); isLeft <- Seq(true, false)) {
        val pair = "(SELECT k, v0, v1 FROM t0 FULL JOIN t1 USING (k)) x"
        val (a, b) = if (isLeft) (pair, several(2)) else (several(2), pair)
        val rewrites = join == "FULL" || join.startsWith("LEFT") != isLeft
        val columns =
          if (join == "LEFT ANTI") { if (isLeft) "x.k, v0" else "t2.k, m, v2" }
          else "x.k, t2.k, m, v0, v1, v2"
        withClue(s"$join $isLeft: ") {
          val query = s"SELECT $columns FROM $a $join JOIN $b ON x.k = t2.k AND x.k = m"
          if (rewrites) checkRewritten(query, 3) else checkRewritten(query)
        }
      }
      // All columns are equal.
      checkSame(sql(s"""SELECT t0.k, t1.k, t2.k, t0.m, t1.m, v0, v1, v2 FROM ${several(0)}
           |FULL JOIN ${several(1)} ON t0.k = t1.k AND t0.k = t1.m AND t0.m = t1.m
           |FULL JOIN t2 ON coalesce(t0.k, t1.k) = t2.k""".stripMargin))
      // The key of a tree is an INT in one comparison, and a BIGINT in the other.
      checkRewritten(
        s"""SELECT t0.k, t1.k, t2.k, m, v0, v1, v2 FROM t0 FULL JOIN t1 ON t0.k = t1.k
           |FULL JOIN (SELECT k, bigint(n2 % 6) AS m, v2 FROM t2) t2
           |ON coalesce(t0.k, t1.k) = t2.k AND bigint(coalesce(t0.k, t1.k)) = m""".stripMargin,
        3)
      val zeros =
        "(0.0d, -0.0d), (-0.0d, 0.0d), (double('NaN'), double('NaN')), (1d, 2d), (2d, null)"
      checkRewritten(
        s"""SELECT string(a.k), string(b.k), string(x), string(y)
           |FROM VALUES (0.0d), (double('NaN')), (2d) AS a(k)
           |FULL JOIN VALUES (-0.0d), (3d) AS b(k) ON a.k = b.k
           |FULL JOIN VALUES $zeros AS c(x, y)
           |ON coalesce(a.k, b.k) = x AND coalesce(a.k, b.k) = y""".stripMargin,
        3)
    }
  }

  test("a multi-way join that is called by name returns each of its key columns") {
    def several(i: Int) = sql(s"SELECT k, n$i % 6 AS m, v$i FROM t$i")
    val named = multiJoin(
      Seq(sql("SELECT k, v0 FROM t0"), several(1)),
      Seq("x", "y"),
      Seq(Seq("k", "k"), Seq("k", "m")))
    val chained = named.join(several(2).select("k", "v2"), expr("x = k"), "full")
    checkRewritten(named, 2)
    checkSame(chained)
  }

  test("keeps renamed columns and keys of single inputs") {
    checkRewritten(
      """SELECT x.first, x.second, c.k, key2 FROM (
        |  SELECT a.k AS first, b.k AS second, coalesce(a.k, b.k) AS key, coalesce(b.k, a.k) AS key2
        |  FROM t0 a FULL JOIN t1 b ON a.k = b.k
        |) x FULL JOIN t2 c ON coalesce(first, second) = c.k""".stripMargin,
      3)
  }

  test("recognizes expressions as keys") {
    checkRewritten(
      """SELECT a.k, a.l, b.k, v1, v2 FROM t0 a FULL JOIN t1 b ON a.k + 1 = b.k
        |FULL JOIN t2 c ON coalesce(a.k + 1, b.k) = c.k""".stripMargin,
      3)
    checkRewritten(
      """SELECT a.l, b.l, c.l, v1, v2 FROM t0 a FULL JOIN t1 b ON upper(a.l) = upper(b.l)
        |FULL JOIN t2 c ON coalesce(upper(b.l), upper(a.l)) = upper(c.l)""".stripMargin,
      3)
  }

  test(
    "a key that has a value for nulls differs from the same expression above an outer join",
    Slow) {
    spark.udf.register("or_zero", (n: Integer) => if (n == null) 0 else n.intValue)
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      for {
        key <- Seq(
          "(%s.l IS NULL)",
          "isnotnull(%s.l)",
          "(%s.l <=> 'a')",
          "or_zero(%s.n)",
          "concat_ws('-', %s.l)",
          "CASE WHEN %s.l > 'b' THEN 1 ELSE 2 END",
          "array(%s.k)")
        join <- Seq("FULL", "LEFT", "RIGHT")
      } withClue(s"$join $key: ") {
        def on(input: Int) = key.format(s"t$input")
        def from(input: Int) = s"(SELECT k, l, n$input AS n, v$input FROM t$input) t$input"
        val two = s"FROM ${from(0)} FULL JOIN ${from(1)} ON t0.k = t1.k AND ${on(0)} = ${on(1)}"
        val three = s"$two $join JOIN ${from(2)} ON t0.k = t2.k AND ${on(0)} = ${on(2)}"
        checkSame(sql(s"SELECT t0.k, t1.k, t2.k, ${on(0)}, ${on(1)}, ${on(2)} $three"))
        val whole = s"coalesce(t0.k, t1.k) = t2.k AND coalesce(${on(0)}, ${on(1)}) = ${on(2)}"
        val chain = s"$two $join JOIN ${from(2)} ON $whole"
        val shown = s"t0.k, t1.k, t2.k, ${on(0)}, ${on(1)}, ${on(2)}, v0, v1, v2"
        checkSame(sql(s"SELECT $shown $chain"))
        checkSame(sql(s"SELECT $shown $chain WHERE ${on(2)} = ${on(2)}"))
      }
      // Spark turns <=> into such keys if another key is a float.
      def floats(input: Int) = s"(SELECT float(k) AS k, l, v$input FROM t$input) t$input"
      val joined = s"FROM ${floats(0)} FULL JOIN ${floats(1)} ON t0.k = t1.k AND t0.l <=> t1.l " +
        s"FULL JOIN ${floats(2)} ON coalesce(t0.k, t1.k) = t2.k AND t1.l <=> t2.l"
      for (where <- Seq("", "WHERE t1.l IS NULL", "WHERE t0.l IS NULL AND v1 > '3'")) {
        checkSame(sql(s"SELECT t0.k, t0.l, t1.l, t1.l IS NULL, t2.l, v0, v1 $joined $where"))
      }
    }
  }

  test("does not cast a wider key of another input to a narrower one") {
    withTempView("wide") {
      sql("SELECT * FROM VALUES (1L, true), (3000000000L, true) AS t(k, f)")
        .createOrReplaceTempView("wide")
      withSQLConf("spark.sql.ansi.enabled" -> "true") {
        val df = sql("""SELECT a.k, nvl2(y.f, a.k, NULL) AS found FROM t0 a
          |LEFT JOIN (SELECT coalesce(b.k, c.k) AS k FROM t1 b FULL JOIN t2 c ON b.k = c.k) x
          |  ON a.k = x.k
          |LEFT JOIN (SELECT coalesce(d.k, e.k) AS k, d.f
          |  FROM wide d FULL JOIN (SELECT bigint(k) AS k FROM t3) e ON d.k = e.k) y
          |  ON a.k = y.k""".stripMargin)
        assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
      }
    }
  }

  test("recognizes casts that keep the key's values", Slow) {
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

  test("joins an input with two aliases of one column") {
    for (shown <- Seq("a.l AS x", "a.l AS x, v2, b.l AS y, v0")) {
      checkRewritten(
        s"""SELECT $shown FROM t0 a FULL JOIN t1 b ON a.l = b.l
           |RIGHT JOIN t2 c ON coalesce(a.l, b.l) = c.l AND c.l = coalesce(b.l, a.l)""".stripMargin,
        3)
    }
  }

  test("groups by the whole key without another exchange, and by other keys with one", Slow) {
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
      // Rows are partitioned by the whole key.
      val isWhole = key.contains("a.k") && key.contains("b.k") && key.contains("c.k")
      assert(exchanges(df).size === (if (isWhole) 3 else 4))
    }
  }

  test("returns the key of each table if equal keys differ", Slow) {
    withTempView("d0", "d1", "d2") {
      table("k, v0", "(0.0d, 'a'), (double('NaN'), 'b'), (1.0d, 'c'), (null, 'd')")
        .createOrReplaceTempView("d0")
      table("k, v1", "(-0.0d, 'a'), (double('NaN'), 'b'), (2.0d, 'c'), (null, 'd')")
        .createOrReplaceTempView("d1")
      table("k, v2", "(0.0d, 'a'), (2.0d, 'b'), (-0.0d, 'c'), (null, 'd')")
        .createOrReplaceTempView("d2")
      val from = "d0 a FULL JOIN d1 b ON a.k = b.k FULL JOIN d2 c ON coalesce(a.k, b.k) = c.k"
      for (key <- Seq(
          "a.k",
          "b.k",
          "coalesce(a.k, b.k, c.k)",
          "coalesce(c.k, b.k, a.k)",
          "coalesce(b.k, a.k)"))
        checkRewritten(s"SELECT string($key), v0, v1, v2 FROM $from", 3)
      val structs = """SELECT string(s.k), v0, v1, v2 FROM (SELECT struct(k) AS s, v0 FROM d0)
          |FULL JOIN (SELECT struct(k) AS s, v1 FROM d1) USING (s)
          |FULL JOIN (SELECT struct(k) AS s, v2 FROM d2) USING (s)""".stripMargin
      // Spark 4 rebuilds such a struct from its fields to compare it, which the rule does not
      // recognize.
      if (BuildInfo.sparkLine == "3.5") checkRewritten(structs, 3)
      else checkLeft(structs, RewriteReason.DifferentKeys)
    }
  }

  test("rewrites char(n) keys unless Spark pads them", Slow) {
    withTable("c3", "c5", "c5b") {
      Seq("c3" -> "x", "c5" -> "y", "c5b" -> "z").foreach { case (name, value) =>
        sql(s"CREATE TABLE $name (k CHAR(${name(1)}), $value INT) USING parquet")
        sql(s"INSERT INTO $name VALUES ('a', 1), ('${name.take(2)}', 2)")
      }
      // Spark pads columns in a comparison, but not a coalesced key.
      checkLeft(
        "SELECT length(k), x, y, z FROM c3 FULL JOIN c5 USING (k) FULL JOIN c5b USING (k)",
        RewriteReason.KeyExpression)
      checkRewritten(
        "SELECT length(k), x, y, z FROM c5 FULL JOIN c5b USING (k) FULL JOIN c3 USING (k)",
        3)
    }
  }

  test("days and times where a day was skipped") {
    for ((zone, inputs) <- Seq("Pacific/Apia" -> Nil, "America/Sao_Paulo" -> Seq(3)))
      withClue(zone)(withSQLConf("spark.sql.session.timeZone" -> zone) {
        table("k, va", "(DATE'2011-12-30', 1), (DATE'2011-12-29', 2)").createOrReplaceTempView(
          "days0")
        table("k, vb", "(DATE'2011-12-31', 3), (DATE'2011-12-29', 4)").createOrReplaceTempView(
          "days1")
        spark
          .sql("SELECT CAST(k AS timestamp) AS k, va AS vc FROM days0")
          .createOrReplaceTempView("times")
        checkRewritten(
          "SELECT * FROM days0 FULL JOIN days1 USING (k) FULL JOIN times USING (k)",
          inputs: _*)
      })
  }
}
