package io.github.skewext.disjunction

import io.github.skewext.Joins
import io.github.skewext.explain.{Explainer, Origin}
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.functions.{col, expr}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.BarrierMap
import org.apache.spark.sql.{Column, DataFrame}

/** Which joins with OR stay Spark's, and what explanations show. */
class OrJoinReasonSuite extends OrJoinTest {

  private val Or = "a.e = b.e OR a.p = b.p"

  private def origin(df: DataFrame): Origin = {
    val joins = Explainer.explain(df.queryExecution).joins
    joins.map(_.origin).distinct match {
      case Seq(one) => one
      case several => fail(s"several origins: $several")
    }
  }

  /** The join stays Spark's for the reason, and the rows are the same. */
  private def refused(reason: OrJoinReason, query: String): Unit = refused(reason, spark.sql(query))

  private def refused(reason: OrJoinReason, df: DataFrame): Unit = {
    val rows = df.collect().toSeq
    assert(nestedLoops(df).nonEmpty, s"${reason.text}: ${df.queryExecution.executedPlan}")
    assert(origin(df).status === Origin.LeftAlone)
    assert(origin(df).text === reason.text)
    assert(origin(df).advice === Some(reason.advice))
    if (df.queryExecution.analyzed.deterministic) {
      assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    }
  }

  test("settings and statistics") {
    for (joinType <- Seq("INNER", "NOT EXISTS")) {
      withSQLConf(SkewConf.OR_JOIN_ENABLED.key -> "false") {
        refused(OrJoinReason.SwitchedOff, query(joinType, Or))
      }
      withSQLConf(SkewConf.OR_JOIN_MIN_PAIRS.key -> "10000000") {
        refused(OrJoinReason.FewPairs, query(joinType, Or))
      }
    }
  }

  test("small sides are those for which a nested loop takes less time") {
    withSQLConf(SkewConf.OR_JOIN_MIN_PAIRS.key -> "10000000") {
      def isRewritten(joinType: String, left: Long, right: Long): Boolean = {
        Seq("left" -> left, "right" -> right).foreach { case (name, rows) =>
          spark.range(rows).selectExpr("id AS p", "id % 1000 AS e").createOrReplaceTempView(name)
        }
        val df = spark.sql(s"SELECT * FROM left a $joinType JOIN right b ON $Or")
        nestedLoops(df).isEmpty
      }
      withTempView("left", "right") {
        // Spark estimates half of the rows of a range with a projection.
        assert(!isRewritten("INNER", 6000, 6000))
        assert(isRewritten("INNER", 8000, 8000))
        // The larger side is copied for each part, so the smaller one must not be tiny.
        assert(!isRewritten("INNER", 100000000L, 100))
        assert(isRewritten("INNER", 100000000L, 160))
        assert(!isRewritten("LEFT", 100000000L, 160))
        assert(isRewritten("LEFT", 100000000L, 320))
        assert(!isRewritten("FULL", 100000000L, 320))
      }
    }
  }

  test("conditions", Slow) {
    refused(OrJoinReason.PartWithoutKey, query("INNER", "a.e = b.e OR a.p < b.p"))
    refused(OrJoinReason.PartWithoutKey, query("LEFT", "a.e = b.e OR a.p = 5"))
    refused(OrJoinReason.PartWithoutKey, query("FULL", "a.p IN (b.p, 7)"))
    refused(OrJoinReason.PartWithoutKey, query("INNER", "a.e = b.e OR a.p + b.p = 5"))
    refused(
      OrJoinReason.TooManyParts,
      query("INNER", (1 to 9).map(i => s"a.p + $i = b.p").mkString(" OR ")))
    refused(
      OrJoinReason.MayFail,
      query("INNER", "a.e = b.e OR a.d = to_number(concat('1', substr(b.e, 9, 1)), '999')"))
  }

  test("keys that may fail in ANSI mode") {
    val on = "CAST(a.w AS STRING) = b.e OR a.p + 1 = b.p"
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "true") {
      refused(OrJoinReason.MayFail, query("INNER", on))
      // Here the keys are columns, and the rest is evaluated as in Spark's join.
      check(query("INNER", "a.e = b.e AND a.p + 1 > b.p OR a.q = b.q"))
      refused(OrJoinReason.MayFail, query("LEFT", "a.e = b.e AND a.p + 1 > b.p OR a.q = b.q"))
    }
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "false")(check(query("INNER", on)))
  }

  test("a user-defined function in a key") {
    spark.udf.register("plus_one", (x: Long) => x + 1)
    refused(OrJoinReason.MayFail, query("INNER", "a.e = b.e OR plus_one(a.v) = b.p"))
    check(query("INNER", "a.e = b.e AND plus_one(a.v) < b.v OR a.p = b.p"))
  }

  test("a subquery in the condition") {
    refused(
      OrJoinReason.Subquery,
      query("INNER", "(a.e = b.e OR a.p = b.p) AND a.v + b.v < (SELECT max(v) FROM twice)"))
  }

  test("hints") {
    for (hint <- Seq("BROADCAST(b)", "SHUFFLE_REPLICATE_NL(b)")) {
      refused(OrJoinReason.Hint, s"SELECT /*+ $hint */ a.v, b.v FROM a JOIN b ON $Or")
    }
  }

  test("sides that may differ when they are read again") {
    val unstable = "(SELECT *, v + rand() >= 0 AS r FROM b)"
    for (joinType <- Seq("LEFT", "FULL", "LEFT SEMI", "LEFT ANTI")) {
      refused(OrJoinReason.NotStable, query(joinType, s"($Or) AND b.r", b = unstable))
    }
    val limited = "(SELECT * FROM b LIMIT 30)"
    refused(OrJoinReason.NotStable, query("LEFT", Or, b = limited))
    withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false") {
      assert(nestedLoops(spark.sql(query("INNER", Or, b = limited))).isEmpty)
    }
    val observed = spark.table("b").observe("seen", expr("count(*)"))
    refused(
      OrJoinReason.NotStable,
      spark.table("a").as("a").join(observed.as("b"), expr(Or), "left"))
  }

  test("a side of which the columns that are read decide which of several rows it has") {
    def latest(ties: Column*) =
      Joins.latest(spark.table("b"), Seq("p"), Seq(expr("v % 2")), Some(ties)).as("b")
    def joined(side: DataFrame) = spark.table("a").as("a").join(side, expr(Or), "left")
    val undecided = joined(latest(expr("v % 2")))
    assert(nestedLoops(undecided).nonEmpty)
    val reasons = Explainer.explain(undecided.queryExecution).joins.map(_.origin.text)
    assert(reasons.contains(OrJoinReason.NotStable.text))
    assert(nestedLoops(joined(latest(spark.table("b").columns.map(col): _*))).isEmpty)
  }

  test("a stream") {
    val stream = spark.readStream.format("rate").load().selectExpr("value AS p", "'x' AS e")
    val joined = stream.as("a").join(spark.table("b").as("b"), expr(Or))
    assert(RewriteOrJoins(joined.queryExecution.analyzed).exists { node =>
      OrJoinReason.of(node).exists(_.reason == OrJoinReason.Streaming)
    })
  }

  test("outer joins below a barrier operator") {
    def reasons(joinType: String) = {
      val join = spark.sql(query(joinType, Or)).queryExecution.analyzed
      val plan = spark.sessionState.optimizer.execute(BarrierMap(join, isBarrier = true))
      plan.collect { case node => OrJoinReason.of(node).map(_.reason) }.flatten
    }
    assert(reasons("FULL") === Seq(OrJoinReason.BarrierStage))
    assert(reasons("INNER") === Nil && reasons("NOT EXISTS") === Nil)
  }

  test("explanations of rewritten joins") {
    val inner = spark.sql(query("INNER", s"($Or) AND a.v < b.v"))
    assert(origin(inner).status === Origin.Rewritten)
    assert(
      origin(
        inner).text === "a join with OR of 2 parts (e = e; p = p) became joins on equal keys; " +
        "reads of the left side: 1, of the right side: 1")
    val text = Joins.explain(inner).toString
    assert(text.contains("rewritten: a join with OR of 2 parts"))
    val left = origin(spark.sql(query("LEFT", Or)))
    assert(left.text.endsWith("reads of the left side: 2, of the right side: 3"))
    val exists = origin(spark.sql(query("NOT EXISTS", Or)))
    assert(exists.text.endsWith("reads of the left side: 1, of the right side: 2"))
  }

  test("the reason stays beside joins that skewext runs") {
    withSQLConf(SkewConf.OR_JOIN_ENABLED.key -> "false") {
      val df = spark.sql(s"SELECT a.v FROM a JOIN twice t ON a.p = t.p JOIN b ON $Or")
      val text = origin(df).text
      assert(text.contains(s"another one compares all pairs: ${OrJoinReason.SwitchedOff.text}"))
    }
  }

  test("an AND of many ORs, and outer joins above others") {
    val ors = (1 to 40).map(i => s"(a.v = $i OR b.v = -$i)").mkString(" AND ")
    refused(OrJoinReason.PartWithoutKey, query("INNER", s"a.e = b.e OR ($ors)"))
    refused(OrJoinReason.TooManyParts, query("INNER", s"a.e = b.e OR ($ors AND ($Or))"))
    val joins = (1 to 5).map(i => s"LEFT JOIN b b$i ON a.e = b$i.e OR a.p = b$i.p").mkString(" ")
    val plan = spark.sql(s"SELECT count(*) FROM a $joins").queryExecution.optimizedPlan
    val reasons = plan.collect { case join: Join => OrJoinReason.of(join).map(_.reason) }.flatten
    assert(reasons === Seq(OrJoinReason.ManyReads), plan)
  }

  test("the names of files that a query reads") {
    val df = spark.sql(
      "SELECT input_file_name() AS f, v FROM a WHERE " +
        "EXISTS (SELECT 1 FROM b b WHERE a.e = b.e OR a.p = b.p)")
    assert(nestedLoops(df).nonEmpty, df.queryExecution.executedPlan)
    assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
  }
}
