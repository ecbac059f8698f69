package io.github.skewext.join.range

import io.github.skewext.Joins
import io.github.skewext.disjunction.OrJoinReason
import io.github.skewext.platform.{Reason, SkewConf}

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.internal.SQLConf

/** Which joins are range joins, and which stay Spark's. */
class PlanRangeJoinsSuite extends RangeJoinTest {

  private val on = "a.int_s >= b.int_s AND a.int_s < b.int_e"

  private val inner = query("INNER", on)

  private def sparks(df: DataFrame): Seq[BaseJoinExec] = {
    df.collect()
    collect(df.queryExecution.executedPlan) {
      case join: BaseJoinExec if !join.getClass.getName.contains("skewext") => join
    }
  }

  private def checkSparks(df: DataFrame): Unit =
    assert(sparks(df).nonEmpty && ranges(df).isEmpty && products(df).isEmpty)

  private def checkLeft(query: String, reason: Reason): Unit = checkLeft(spark.sql(query), reason)

  private def checkLeft(df: DataFrame, reason: Reason): Unit = {
    checkSparks(df)
    assert(Joins.explain(df).toString.contains(reason.text))
  }

  test("replaces broadcast nested loop joins", Slow) {
    withAdaptive {
      for (joinType <- joinTypes) checkRange(query(joinType, on))
    }
  }

  test("the explanation has the form of the range, the side and the tested pairs") {
    val df = spark.sql(inner)
    val planned = Joins.explain(df).toString
    assert(planned.contains("BroadcastRangeJoin inner ["))
    assert(planned.contains("run by skewext: range join (point in interval): the right side is"))
    df.collect()
    assert(Joins.explain(df).toString.contains("pairs tested for 45 rows, which returned"))
  }

  test("tests few pairs that do not match") {
    val rows = "SELECT id AS x FROM range(1000)"
    val df = spark.sql(
      s"SELECT /*+ BROADCAST(b) */ count(*) FROM ($rows) a JOIN " +
        s"(SELECT id * 2 AS lo, id * 2 + 3 AS hi FROM range(1000)) b ON x >= lo AND x < hi")
    val found = df.collect().head.getLong(0)
    val Seq(join) = ranges(df)
    assert(join.metrics("numOutputRows").value === found)
    assert(join.metrics("numStreamedRows").value === 1000)
    // Those at an open end.
    assert(join.metrics("numTests").value <= found + 1000)
  }

  test("a switch, an excluded rule and hints leave joins to Spark") {
    withSQLConf(SkewConf.RANGE_JOIN_ENABLED.key -> "false")(
      checkLeft(inner, RangeReason.SwitchedOff))
    withSQLConf(SkewConf.EXCLUDED_RULES.key -> PlanRangeJoins.ruleName) {
      assert(sparks(spark.sql(inner)).map(_.getClass) === Seq(classOf[BroadcastNestedLoopJoinExec]))
    }
    checkLeft(inner.replace("SELECT", "SELECT /*+ SHUFFLE_REPLICATE_NL(b) */"), RangeReason.Hint)
  }

  test("Databricks' range join hint has no effect, which explain notes") {
    for (hint <- Seq("RANGE_JOIN(a, 10)", "range_join(b, 0.5), BROADCAST(b)")) {
      val df = spark.sql(inner.replace("SELECT", s"SELECT /*+ $hint */"))
      assertSameRows(df.collect().toSeq, rowsWhenOff(spark.sql(inner)), "Spark without the hint")
      assert(ranges(df).size === 1)
      val text = hint.takeWhile(_ != ')').toUpperCase(java.util.Locale.ROOT)
      assert(
        Joins
          .explain(df)
          .toString
          .toUpperCase(java.util.Locale.ROOT)
          .contains(s"THE HINT $text) HAS NO"))
    }
    assert(!Joins.explain(spark.sql(inner)).toString.contains("The hint"))
  }

  test("joins without a range stay Spark's") {
    checkLeft(query("INNER", "a.int_s < b.int_s"), RangeReason.OneSided)
    checkLeft(query("LEFT", "a.int_s <> b.int_s"), RangeReason.NoRange)
    checkLeft("SELECT a.id FROM a CROSS JOIN b", RangeReason.NoCondition)
    val open = "a.int_s >= b.int_s AND (b.k IS NULL OR a.int_s < b.int_e)"
    checkLeft(query("FULL", open), OrJoinReason.PartWithoutKey)
  }

  test("joins without a side to broadcast make an index of each partition", Slow) {
    withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1") {
      withAdaptive {
        for (rows <- Seq("1000000", "7", "1"); settings <- Seq(GeneratedCode, Interpreted)) {
          withSQLConf(settings :+ (SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key -> rows): _*) {
            val df = spark.sql(inner)
            assertSameRows(df.collect().toSeq, rowsWhenOff(df), "Spark")
            assert(products(df).map(_.metrics("numOutputRows").value) === Seq(df.count()))
            assert(
              Joins
                .explain(df)
                .toString
                .contains("for each pair of partitions, a task makes a sorted"))
          }
        }
        checkRange(
          s"SELECT k, count(*) FROM (SELECT a.k FROM a JOIN b ON $on AND a.k < b.id) GROUP BY k")
      }
      assert(spark.sql(s"$inner LIMIT 3").collect().length === 3)
      assert(ranges(spark.sql(inner.replace("SELECT", "SELECT /*+ BROADCAST(a) */"))).size === 1)
      // Spark broadcasts a side of other joins, however large it is.
      checkRange(query("LEFT", on))
    }
  }

  test("joins with equal keys and a broadcast side stay Spark's hash joins") {
    val df = spark.sql(query("INNER", s"a.k = b.k AND $on"))
    assert(sparks(df).map(_.getClass) === Seq(classOf[BroadcastHashJoinExec]))
  }

  test("streams stay Spark's") {
    val stream = spark.readStream.format("rate").load().selectExpr("value AS v")
    val joined = stream.join(spark.table("b"), expr("v BETWEEN long_s AND long_e"))
    val reasons = joined.queryExecution.analyzed.collect { case join: Join =>
      PlanRangeJoins.whyNot(join)
    }
    assert(reasons === Seq(Some(RangeReason.Streaming)))
  }

  test("sides without rows, and without intervals", Slow) {
    for (joinType <- joinTypes; where <- Seq("id < 0", "int_s IS NULL"); left <- Seq(true, false)) {
      val none = s"(SELECT * FROM ${if (left) "a" else "b"} WHERE $where)"
      val hint = s"/*+ BROADCAST(${if (joinType.contains("RIGHT")) "a" else "b"}) */"
      val q =
        if (left) query(joinType, on, hint, a = none) else query(joinType, on, hint, b = none)
      // Spark drops some of these joins.
      checkSame(spark.sql(q))
    }
  }

  test("a finished broadcast with few rows is joined by Spark, which tests all pairs") {
    withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "true") {
      for (joinType <- joinTypes; settings <- Seq(GeneratedCode, Interpreted)) {
        withClue(s"$joinType: ")(withSQLConf(settings: _*)(checkFew(joinType)))
      }
    }
  }

  private def checkFew(joinType: String): Unit = {
    val isRight = joinType == "RIGHT"
    def rows(count: Int) =
      s"(SELECT id, id AS s, id + 3 AS e, id AS k, string(id) AS text_s, 'e' AS text_e FROM range($count))"
    def joined(count: Int) = {
      val (a, b) = if (isRight) (rows(count), "b") else ("a", rows(count))
      val on =
        if (isRight) "b.long_s >= a.s AND b.long_s < a.e" else "a.long_s >= b.s AND a.long_s < b.e"
      query(joinType, on, s"/*+ BROADCAST(${if (isRight) "a" else "b"}) */", a, b)
    }
    val df = spark.sql(joined(31))
    assert(ranges(df).size === 1)
    checkLeft(df, RangeReason.FewRows)
    assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
    checkRange(joined(32))
  }

  test("few rows with strings, without columns, in two joins, and in a plan made again") {
    withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "true") {
      val few = "(SELECT * FROM b WHERE id < 9)"
      val hint = "/*+ BROADCAST(b, c) */"
      val text = query("FULL", "a.text_s >= b.text_s AND a.text_s < b.text_e", hint, b = few)
      val counted = s"SELECT $hint count(*) FROM a JOIN $few b ON $on"
      val two = s"SELECT a.id, c.id FROM a LEFT JOIN $few b ON $on " +
        s"LEFT JOIN $few c ON ${on.replace("b.", "c.")}"
      val grouped =
        s"SELECT k, count(*) AS n FROM (SELECT $hint a.k FROM a JOIN $few b ON $on) GROUP BY k"
      val joined = s"SELECT g.k, g.n, x.id FROM ($grouped) g JOIN a x ON g.n = x.id"
      for (q <- Seq(text, counted, two, grouped, joined)) withClue(s"$q: ") {
        val df = spark.sql(q)
        checkSparks(df)
        assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
      }
    }
  }

  test("long rows, each a bit longer than the one before") {
    checkRange(
      "SELECT /*+ BROADCAST(b) */ a.id, length(b.t) FROM range(0, 20) a JOIN " +
        "(SELECT id AS lo, id + 2 AS hi, repeat('x', CAST(4100 + id * 8 AS INT)) AS t " +
        "FROM range(0, 700, 1, 1)) b ON a.id >= b.lo AND a.id < b.hi")
  }

  test("exchanges of one table with one range are reused") {
    val df = spark.sql(
      s"SELECT a.id, b.id FROM a JOIN b ON $on UNION ALL SELECT a.id + 1, b.id FROM a JOIN b ON $on")
    withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false") {
      val plan = again(df).queryExecution.executedPlan
      assert(collect(plan) { case r: ReusedExchangeExec => r }.size === 1, plan)
      checkRange(
        s"SELECT a.id, b.id FROM a JOIN b ON $on UNION ALL SELECT a.id + 1, b.id FROM a JOIN b ON $on")
      val other = on.replace("int_e", "int_e - 1")
      val two = spark.sql(
        s"SELECT a.id FROM a JOIN b ON $on UNION ALL SELECT a.id + 1 FROM a JOIN b ON $other")
      assert(collect(two.queryExecution.executedPlan) { case r: ReusedExchangeExec => r }.isEmpty)
    }
  }

  test("keeps the partitions and the order of the streamed side") {
    val sorted = "(SELECT * FROM a DISTRIBUTE BY k SORT BY k, id)"
    val df =
      spark.sql(s"SELECT a.k, count(*), max(b.id) FROM $sorted a LEFT JOIN b ON $on GROUP BY a.k")
    assertSameRows(df.collect().toSeq, rowsWhenOff(df), "Spark")
    assert(exchanges(df).size === 1)
  }

  test("adaptive execution plans again around the join", Slow) {
    withSQLConf(
      SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "true",
      SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "1",
      SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD.key -> "10MB") {
      for (joinType <- Seq("INNER", "LEFT", "FULL"); side <- Seq("a", "b")) {
        val joined = s"SELECT /*+ BROADCAST($side) */ a.k AS g, count(b.id) AS n, max(a.id) AS m " +
          s"FROM (SELECT k, int_s, max(id) AS id FROM a GROUP BY k, int_s, id) a $joinType JOIN " +
          s"(SELECT int_s, int_e, max(id) AS id FROM b GROUP BY int_s, int_e, id) b ON $on GROUP BY a.k"
        checkRange(s"SELECT j.*, c.text_s FROM ($joined) j JOIN a c ON j.m = c.id AND c.k < 3")
      }
    }
  }

  test("a subquery in the condition, and operators above") {
    checkRange(query("LEFT", s"$on AND b.id < (SELECT max(id) - 3 FROM a)"))
    inGeneratedCode {
      checkRange(
        s"SELECT text_s, count(*), sum(id) FROM ($inner) t(id, i, text_s, e) GROUP BY text_s")
      assert(spark.sql(s"$inner LIMIT 7").collect().length === 7)
      val twice =
        s"SELECT x.id, c.id FROM ($inner) x(id, i, s, e) JOIN b c ON x.id BETWEEN c.int_s AND c.int_e"
      checkRange(twice)
    }
  }
}
