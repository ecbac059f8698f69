package io.github.skewext.disjunction

import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.Expand
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.internal.SQLConf

/** The rows and plans of joins with OR. */
class OrJoinSuite extends OrJoinTest {

  private val ors = Seq(
    "a.e = b.e OR a.p = b.p",
    "a.e = b.e OR b.p = a.p OR a.f = b.f",
    "a.e = b.e AND a.v < b.v OR a.p = b.p",
    "a.e = b.e AND a.v < 20 OR a.p = b.p AND b.w > 3 OR a.q = b.q AND a.w + b.w > 9",
    "a.e <=> b.e OR a.q = b.q",
    "lower(a.e) = lower(b.e) OR a.p + 1 = b.p",
    "a.p IN (b.p, b.q, b.v)",
    "a.e = b.e OR a.q = b.p OR a.p = b.q",
    "a.st = b.st OR a.d = b.d OR a.n = b.n",
    "a.e = b.e AND a.p = b.p OR a.e = b.e AND a.q = b.q OR a.f = b.f",
    "a.e = b.e AND a.v < b.v OR a.p = b.p OR a.e = b.e AND a.w < b.w",
    "a.v > 3 AND (a.e = b.e OR a.p = b.p) OR a.q = b.q AND b.v < 20",
    "a.n = CAST(b.n AS TIMESTAMP) OR a.q = b.d",
    "a.p = b.p OR a.p = b.q OR a.q = b.p OR a.q = b.q OR a.e = b.e OR a.n = b.n OR a.v = b.v")

  private val others = Seq("", "AND a.v < b.v", "AND (a.w IS NULL OR b.w > a.w)", "AND a.q < b.p")

  private val adaptive = Seq("true", "false")

  private val broadcast = Seq("-1", "10MB")

  private val evaluation = Seq("compiled", "interpreted")

  private val tables =
    Seq("a" -> "b", "a" -> "twice", "twice" -> "a", "a" -> "empty", "empty" -> "b")

  private val cases = for {
    joinType <- types
    or <- ors
    other <- others
    aqe <- adaptive
    threshold <- broadcast
    how <- evaluation
    (a, b) <- tables
  } yield (joinType, or, other, aqe, threshold, how, a, b)

  test("rows are those of Spark's joins for each type, OR, other condition and setting") {
    val chosen =
      if (testSlow) types.flatMap(of => covering(cases.filter(_._1 == of))) ++ some(100, cases)
      else covering(cases) ++ some(12, cases)
    chosen.foreach { case given @ (joinType, or, other, aqe, threshold, how, a, b) =>
      val settings = Seq(
        SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> aqe,
        SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> threshold) ++
        (if (how == "compiled") GeneratedCode else Interpreted)
      withClue(s"$given: ") {
        withSQLConf(settings: _*)(check(query(joinType, s"($or) $other", a, b)))
      }
    }
  }

  test("an inner join reads and shuffles each side once") {
    val df = check("SELECT a.v, b.v FROM a JOIN b ON a.e = b.e OR a.p = b.p")
    assert(joins(df).size === 1)
    assert(exchanges(df).size === 2)
    assert(
      scans(df).map(_.output.map(_.name).toSet) === Seq(Set("e", "p", "v"), Set("e", "p", "v")))
  }

  test("parts of other join types read a side as often as explain shows", Slow) {
    def reads(joinType: String) = scans(check(query(joinType, "a.e = b.e OR a.p = b.p")))
      .groupBy(_.tableIdentifier.get.table)
      .map { case (name, all) => name -> all.size }
    assert(reads("LEFT SEMI") === Map("a" -> 1, "b" -> 2))
    assert(reads("LEFT ANTI") === Map("a" -> 1, "b" -> 2))
    assert(reads("NOT EXISTS") === Map("a" -> 1, "b" -> 2))
    assert(reads("EXISTS OR") === Map("a" -> 1, "b" -> 2))
    assert(reads("LEFT") === Map("a" -> 2, "b" -> 3))
    assert(reads("RIGHT") === Map("a" -> 3, "b" -> 2))
    assert(reads("FULL") === Map("a" -> 4, "b" -> 4))
  }

  private def scans(df: DataFrame): Seq[FileSourceScanExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case scan: FileSourceScanExec => scan }

  test("a small side is broadcast, and the other one is not shuffled") {
    withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "10MB") {
      for (joinType <- Seq("INNER", "LEFT SEMI", "LEFT ANTI", "EXISTS OR")) {
        assert(exchanges(check(query(joinType, "a.e = b.e OR a.p = b.p"))).isEmpty)
      }
    }
  }

  test("keys of one type share a key column, and parts with equal keys are one") {
    def keys(on: String) = {
      val df = check(s"SELECT a.v, b.v FROM a JOIN b ON $on")
      val expand = df.queryExecution.optimizedPlan.collectFirst { case e: Expand => e }.get
      (expand.projections.size, expand.output.count(_.name.startsWith("key")))
    }
    assert(keys("a.p = b.p OR a.v = b.v") === ((2, 1)))
    assert(keys("a.p = b.p OR a.e = b.e") === ((2, 2)))
    assert(keys("a.p = b.p AND a.v = b.v OR a.w = b.w") === ((2, 2)))
    assert(keys("a.p = b.p AND a.v < b.v OR a.e = b.e OR b.p = a.p AND a.w < b.w") === ((2, 2)))
    assert(keys("a.p IN (b.p, b.v, b.w, b.v)") === ((3, 1)))
  }

  test("rows without keys, and of a part whose condition on one side is false, are not shuffled") {
    val df =
      check("SELECT a.v, b.v FROM a JOIN b ON a.e = b.e AND a.v < 5 OR a.p = b.p AND b.w = 1")
    val rows = exchanges(df).map(_.runtimeStatistics.rowCount.get.toLong)
    val expected = Seq("a" -> "v < 5", "b" -> "w = 1").map { case (table, filter) =>
      val (first, second) = if (table == "a") (filter, "true") else ("true", filter)
      spark.table(table).where(s"e IS NOT NULL AND $first").count() +
        spark.table(table).where(s"p IS NOT NULL AND $second").count()
    }
    assert(rows === expected)
  }

  test("self-joins, views, common tables and cached sides", Slow) {
    withTempView("people") {
      spark
        .sql("SELECT *, concat(e, '') AS e2 FROM a WHERE v < 30")
        .createOrReplaceTempView("people")
      for (joinType <- if (testSlow) types else some(3, types)) {
        check(query(joinType, "a.e = b.e2 OR a.p = b.q", "people", "people"))
        val ctes = "WITH c AS (SELECT e, p, v, w FROM a WHERE v > 2), d AS (SELECT * FROM c) "
        check(ctes + query(joinType, "a.e = b.e OR a.p = b.v", "c", "d"))
      }
      val cached = spark.sql("SELECT * FROM b ORDER BY p").cache()
      try {
        cached.createOrReplaceTempView("cached")
        for (joinType <- if (testSlow) types else Seq("FULL", "EXISTS OR")) {
          check(query(joinType, "a.e = b.e OR a.p = b.q", "cached", "cached"))
        }
      } finally cached.unpersist()
    }
  }

  test("operators above and below, and joins beside", Slow) {
    val join = "SELECT a.v, a.p, b.w, b.e FROM a JOIN b ON a.e = b.e OR a.p = b.p"
    val left = "SELECT a.v, b.w, b.p FROM a LEFT JOIN b ON a.e = b.e OR a.p = b.p"
    check(s"SELECT w, count(*), sum(v) FROM ($join) GROUP BY w")
    check(s"SELECT w, count(*), sum(v) FROM ($left) GROUP BY w HAVING count(*) > 2")
    check(s"SELECT v, w FROM ($join) UNION ALL SELECT v, w FROM ($left)")
    check(s"SELECT DISTINCT e FROM ($join) WHERE v > 3 AND w < 8")
    check(s"SELECT * FROM ($left) j JOIN b c ON j.p = c.p OR j.w = c.w")
    check(s"SELECT * FROM ($join) j LEFT JOIN ($left) k ON j.p = k.p AND j.v = k.v")
    check(s"SELECT *, sum(w) OVER (PARTITION BY p ORDER BY v, w, e) FROM ($join)")
    check(
      "SELECT * FROM (SELECT e, p, sum(v) v FROM a GROUP BY e, p) a JOIN " +
        "(SELECT e, max(p) p FROM b GROUP BY e) b ON a.e = b.e OR a.p = b.p")
    check(s"SELECT (SELECT count(*) FROM ($join)) AS n, v FROM b")
    check(
      "SELECT * FROM b WHERE v > (SELECT avg(a.v) FROM a LEFT SEMI JOIN b ON " +
        "a.e = b.e OR a.p = b.p)")
    check(
      "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.e = b.e OR a.p = b.p) AND " +
        "NOT EXISTS (SELECT 1 FROM twice t WHERE a.q = t.q OR a.v = t.v AND t.w > 3) AND v < 30")
    check(
      "SELECT a.v, b.v, c.v FROM a JOIN b JOIN twice c ON (a.e = b.e OR a.p = b.p) AND " +
        "(b.q = c.q OR a.v = c.v)")
    check("SELECT count(*) FROM a JOIN b ON a.e = b.e OR a.p = b.p")
    check("SELECT 1 FROM a RIGHT JOIN b ON a.e = b.e OR a.p = b.p")
  }

  test("joins of DataFrames, and a union of sides", Slow) {
    val (a, b) = (spark.table("a").as("a"), spark.table("b").union(spark.table("b")).as("b"))
    for (how <- Seq("inner", "left", "right", "full", "left_semi", "left_anti")) {
      check(a.join(b, expr("a.e = b.e OR a.p = b.p"), how))
    }
  }

  test("a column of an unstable side is computed once by an inner join") {
    val df = check(
      "SELECT a.v, b.v FROM (SELECT *, v + CAST(0 * rand() AS LONG) AS r FROM a) a " +
        "JOIN b ON a.r = b.p OR a.e = b.e")
    assert(joins(df).size === 1)
  }

  test("random joins", Slow) {
    val random = new scala.util.Random(64)
    def pick[A](from: Seq[A]): A = from(random.nextInt(from.size))
    val equal = Seq(
      "e = e",
      "p = p",
      "q = q",
      "f = f",
      "d = d",
      "n = n",
      "st = st",
      "p = q",
      "q = d",
      "v = w",
      "w <=> w",
      "e <=> e").map { pair =>
      val Array(l, op, r) = pair.split(" ")
      s"a.$l $op b.$r"
    }
    val conditions = Seq(
      "a.v < b.v",
      "a.w IS NULL",
      "b.v > 7",
      "a.w + b.w < 12",
      "b.e LIKE 'x%'",
      "coalesce(a.w, 3) <> b.v")
    def part: String =
      (Seq.fill(1 + random.nextInt(2))(pick(equal)) ++
        Seq.fill(random.nextInt(3))(pick(conditions))).mkString(" AND ")
    for (i <- 1 to (if (testSlow) 200 else 15)) {
      val on = Seq.fill(2 + random.nextInt(3))(part).mkString("(", " OR ", ")") +
        (if (random.nextBoolean()) s" AND ${pick(conditions)}" else "")
      val sql = query(pick(types), on, pick(Seq("a", "twice")), pick(Seq("b", "a", "twice")))
      withClue(s"$i: $sql ") {
        withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> random.nextBoolean().toString) {
          val df = spark.sql(sql)
          val rows = df.collect().toSeq
          assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
        }
      }
    }
  }

  test("a query without OR is not searched") {
    val plan = spark.sql("SELECT * FROM a JOIN b ON a.p < b.p").queryExecution.optimizedPlan
    assert(RewriteOrJoins(plan) eq plan)
    val rewritten = spark.sql(query("FULL", "a.e = b.e OR a.p = b.p")).queryExecution.optimizedPlan
    assert(RewriteOrJoins(rewritten) eq rewritten)
    assert(SkewConf.OR_JOIN_MIN_PAIRS.defaultValue.get > 0)
  }
}
