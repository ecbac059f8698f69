package io.github.skewext.technique

import io.github.skewext.explain.Origin
import io.github.skewext.internal.BuildInfo
import io.github.skewext.platform.{Guard, Reason, SkewConf}
import io.github.skewext.technique.hint.{TechniqueHint, TechniqueOptions}
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions, TestShims}

import java.util.concurrent.atomic.AtomicInteger


import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, EqualTo}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, ShuffledHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.LongType
import org.apache.spark.sql.{DataFrame, Row}

/** Hints that ask for a technique, and Spark's own beside them. */
class TechniqueHintsSuite extends SkewJoinTest {

  test("hints of Spark's own are obeyed, by whatever technique", Slow) {
    val stock = large.join(small, Seq("k"), "left")
    val rows = rowsWhenOff(stock)
    def shape(df: DataFrame): Seq[String] = {
      assertStock(df, stock.schema, rows)
      collect(df.queryExecution.executedPlan) {
        case _: BroadcastHashJoinExec => "broadcast"
        case _: ShuffledHashJoinExec => "hash"
        case _: SortMergeJoinExec => "merge"
      }
    }
    def byFunction(technique: String, hint: String) =
      skewJoin(large, small.hint(hint), "k", "left", technique, Map.empty, null)
    def byWords(technique: String)(side: DataFrame) = {
      val hinted = large.join(side, Seq("k"), "left")
      assert(shape(hinted) === Seq("broadcast"))
      assert(made(hinted) === Seq(technique))
    }
    val ways = Seq[String => Unit](
      { technique =>
        val df = byFunction(technique, "broadcast")
        assert(shape(df) === Seq("broadcast"))
        assert(explained(df).head.origin.text.contains("as the hint broadcast requests"))
      },
      technique => assert(shape(byFunction(technique, "shuffle_hash")) === Seq("hash")),
      technique => byWords(technique)(small.hint("broadcast").hint("skewext_join", technique)),
      technique => byWords(technique)(small.hint("skewext_join", technique).hint("broadcast")))
    val cases =
      for (technique <- SkewTechniques.all.map(_.name); way <- ways) yield (technique, way)
    for ((technique, way) <- covering(cases)) withClue(s"$technique: ")(way(technique))
    large.createOrReplaceTempView("l")
    small.createOrReplaceTempView("s")
    for (hints <- Seq(
        "SKEWEXT_JOIN(s, auto), BROADCAST(s)",
        "BROADCAST(s), SKEWEXT_JOIN(s, auto)")) {
      val df = spark.sql(s"SELECT /*+ $hints */ * FROM l LEFT JOIN s USING (k)")
      assert(shape(df) === Seq("broadcast"))
      assert(made(df) === Seq("auto"))
    }
    // Spark can broadcast no side of this one, the technique can.
    val full = skewJoin(large, broadcast(small), "k", "full", "broadcast_map")
    assert(made(full).toSet === Set("broadcast_map"))
    // A hint on a join below.
    val below = large.join(broadcast(small), "k").select("k", "v0")
    val above = skewJoin(below, skewed(2, 60), "k", "full", "adaptive")
    above.collect()
    assert(collect(above.queryExecution.executedPlan) { case b: BroadcastHashJoinExec =>
      b
    }.size === 1)
  }

  test("a hint runs no job, whether its query is planned or explained") {
    val jobs = new AtomicInteger
    val listener = new SparkListener {
      override def onJobStart(start: SparkListenerJobStart): Unit = jobs.incrementAndGet()
    }
    val sides = (large.localCheckpoint(), small.localCheckpoint())
    spark.sparkContext.addSparkListener(listener)
    try {
      for (technique <- SkewTechniques.all.map(_.name)) {
        for (adaptive <- Seq("true", "false"))
          withSQLConf("spark.sql.adaptive.enabled" -> adaptive) {
            val df = sides._1.join(sides._2.hint("skewext_join", technique), Seq("k"), "left")
            explained(df)
            df.queryExecution.executedPlan
            TestSessions.drainEvents(spark)
            assert(jobs.get === 0, technique)
            if (technique == "salted") assert(refusals(df) === Seq(TechniqueReason.WrongOption))
          }
      }
    } finally {
      spark.sparkContext.removeSparkListener(listener)
    }
  }

  test("ignores a hint in a CTE that Spark computes once, with a warning", Slow) {
    withTempView("l", "s") {
      // The query returns the square of the rows with the hot key.
      skewed(0, 120, hot = 2).createOrReplaceTempView("l")
      small.createOrReplaceTempView("s")
      for (technique <- Seq("iterative_broadcast", "broadcast_map", "broadcast", "adaptive")) {
        val df = spark.sql(s"""WITH w AS (
             |  SELECT /*+ skewext_join(s, '$technique') */ *, rand() AS r FROM l LEFT JOIN s USING (k))
             |SELECT x.k, count_if(x.r < 1 AND y.r < 1) FROM w x JOIN w y USING (k)
             |WHERE x.k > 0 GROUP BY x.k""".stripMargin)
        assert(refusals(df).contains(TechniqueReason.CommonTable), technique)
        checkAnswer(df, rowsWhenOff(df))
      }
    }
  }

  test("a hint on a join of streams is left out", Slow) {
    // Each partition of a join of streams keeps four tables of what it has seen, in files.
    withSQLConf("spark.sql.shuffle.partitions" -> "1") {
      val (l, r) = (TestShims.numbers(spark), TestShims.numbers(spark))
      val techniques = Seq("salted", "broadcast_map", "auto")
      val joined = techniques.map { technique =>
        val words = technique +: (if (technique == "broadcast_map") Nil else Seq("hot_keys=1"))
        l.toDF()
          .toDF("k")
          .join(r.toDF().toDF("k").hint("skewext_join", words: _*), "k")
          .withColumn("technique", lit(technique))
      }
      val query =
        joined.reduce(_ union _).writeStream.format("memory").queryName("joined").start()
      try {
        for (_ <- 0 until 2) {
          l.addData(Seq.fill(20)(1))
          r.addData(Seq.fill(20)(1))
          query.processAllAvailable()
        }
      } finally {
        query.stop()
      }
      val counts = spark.table("joined").groupBy("technique").count()
      checkAnswer(counts, techniques.map(Row(_, 1600)))
    }
  }

  test("hints, in SQL and of DataFrames", Slow) {
    large.createOrReplaceTempView("l")
    small.createOrReplaceTempView("s")
    val query = "* FROM l FULL JOIN s USING (k)"
    for (hint <- Seq(
        "skewext_join(s, broadcast_map)",
        "SKEWEXT_JOIN('broadcast_map', l)",
        "SKEWEXT_JOIN(l, broadcast_map, 'side=right')")) {
      val df = spark.sql(s"SELECT /*+ $hint */ $query")
      assertStock(df, spark.sql(s"SELECT $query"))
      assert(made(df).toSet === Set("broadcast_map"), hint)
    }
    val hinted =
      large.join(small.hint("skewext_join", "adaptive", "threshold=1g"), Seq("k"), "full")
    assertStock(hinted, large.join(small, Seq("k"), "full"))
    assert(made(hinted) === Seq("adaptive"))
    assert(splitJoins(hinted).isEmpty)
  }

  // Spark begins with the plan of a CTE anew when there are other predicates on it to push down: it
  // would go on for ever if these were about columns that are made anew each time.
  test("in a CTE that is not a part of the query", Slow) {
    def asked(join: DataFrame): DataFrame = {
      join.createOrReplaceTempView("j")
      spark.sql("""WITH w AS (SELECT k, a, rand() AS r FROM j)
                  |SELECT k, a, r >= 0 AS p FROM w WHERE k > 1 AND a < 300
                  |UNION ALL SELECT k, a, r < 0 AS p FROM w WHERE k <= 5 AND a > 100""".stripMargin)
    }
    val left = large.withColumnRenamed(large.columns(1), "a")
    val cases = for {
      technique <- Seq("broadcast_map", "iterative_broadcast", "salted")
      how <- Seq("inner", "full", "left_semi")
    } yield (technique, how)
    for ((technique, how) <- covering(cases)) withClue(s"$technique, $how: ") {
      assertStock(
        asked(skewJoin(left, small, "k", how, technique)),
        asked(stockJoin(left, small, "k", how)))
    }
  }

  test("names in a hint that are also names of columns or functions") {
    def check(hint: String, from: String, technique: String): Unit = withClue(s"$hint, $from: ") {
      val df = spark.sql(s"SELECT /*+ SKEWEXT_JOIN($hint) */ * FROM $from")
      assertStock(df, spark.sql(s"SELECT * FROM $from"))
      assert(made(df).toSet === Set(technique))
    }
    withTempView("sales", "region", "user") {
      table("region, auto", "(1, 1), (2, 2), (2, 3), (null, 4)").createOrReplaceTempView("sales")
      table("id, name", "(1, 'a'), (2, 'b'), (3, 'c')").createOrReplaceTempView("user")
      table("id, name", "(2, 'a'), (4, 'b')").createOrReplaceTempView("region")
      val regions = "sales s FULL JOIN region ON s.region = region.id"
      check("region, broadcast_map", regions, "broadcast_map")
      check("region, auto", regions, "adaptive")
      check("user, broadcast_map", "sales FULL JOIN user ON region = id", "broadcast_map")
      // A column of both sides.
      table("region, id", "(2, 5), (3, 6)").createOrReplaceTempView("region")
      val both = "sales s FULL JOIN region ON s.region = region.region"
      check("'region', broadcast_map", both, "broadcast_map")
      if (BuildInfo.sparkLine != "3.5") check("region, broadcast_map", both, "broadcast_map")
    }
  }

  test("a hint on a subquery of a predicate has no effect, which explain notes") {
    withTempView("l", "s") {
      large.createOrReplaceTempView("l")
      small.createOrReplaceTempView("s")
      val df =
        spark.sql(
          "SELECT * FROM l WHERE k IN (SELECT /*+ SKEWEXT_JOIN(s, broadcast_map) */ k FROM s)")
      assertStock(df, spark.sql("SELECT * FROM l WHERE k IN (SELECT k FROM s)"))
      val origin = explained(df).head.origin
      assert(origin.status === Origin.LeftAlone)
      assert(origin.text.contains(TechniqueReason.Subquery.text))
      assert(origin.advice === Some(TechniqueReason.Subquery.advice))
      withSQLConf(Off)(assert(explained(again(df)).head.origin.status === Origin.SwitchedOff))
      val excluded = SkewConf.EXCLUDED_RULES.key -> "PlanSkewJoins"
      withSQLConf(excluded)(assert(explained(again(df)).head.origin.status === Origin.SwitchedOff))
      val join = "l LEFT SEMI JOIN s ON l.k = s.k"
      assert(made(spark.sql(s"SELECT /*+ SKEWEXT_JOIN(s, broadcast_map) */ * FROM $join")).nonEmpty)
    }
  }

  test("hints that are wrong change nothing", Slow) {
    large.createOrReplaceTempView("l")
    small.createOrReplaceTempView("s")
    val query = "* FROM l FULL JOIN s USING (k)"
    for (hint <- Seq(
        // The name of a hint that is proposed for Spark.
        "SKEW_JOIN(s, broadcast_map)",
        "SKEWEXT_JOIN(s)",
        "SKEWEXT_JOIN(s, magic)",
        "SKEWEXT_JOIN(t, broadcast_map)",
        "SKEWEXT_JOIN(s, broadcast_map, 'chunk=3')",
        "SKEWEXT_JOIN(s, 3)")) {
      val df = spark.sql(s"SELECT /*+ $hint */ $query")
      assertStock(df, spark.sql(s"SELECT $query"))
      assert(contents(df).isEmpty, hint)
    }
    // Right as a hint, but not for this join: that is told by the explanation.
    val refused = spark.sql(
      "SELECT /*+ SKEWEXT_JOIN(s, broadcast, 'side=left') */ " +
        "* FROM l LEFT JOIN s USING (k)")
    assertStock(refused, spark.sql("SELECT * FROM l LEFT JOIN s USING (k)"))
    assert(refusals(refused) === Seq(TechniqueReason.JoinType))
    val origin = explained(refused).head.origin
    assert(origin.status === Origin.LeftAlone)
    assert(origin.text.contains(TechniqueReason.JoinType.text))
    assert(origin.advice.nonEmpty)
  }

  test("a join that a technique fails to plan stays Spark's, and the others do not") {
    def hinted(left: DataFrame, right: LogicalPlan): LogicalPlan = {
      val wanted = TechniqueHint.Wanted("iterative_broadcast", TechniqueOptions(), prepared = false)
      val on = EqualTo(left.queryExecution.analyzed.output.head, right.output.head)
      val join = Join(left.queryExecution.analyzed, right, Inner, Some(on), JoinHint.NONE)
      TechniqueHint.on(join, wanted)
    }
    val failing = FailingStatistics(Seq(AttributeReference("k", LongType)()))
    val plan = Union(
      Seq(
        hinted(large.select("k"), small.select("k").queryExecution.analyzed),
        hinted(large.select("k"), failing)))
    val planned = SqlInternals.withActive(spark)(PlanSkewJoins(plan))
    val Seq(first, second) = planned.children.map(_.collect { case node =>
      TechniqueHint.of(node)
    }.flatten)
    assert(first.nonEmpty && first.forall(_.isInstanceOf[TechniqueHint.Made]))
    assert(
      second.collect { case TechniqueHint.Refused(_, Reason.Detailed(reason, _)) => reason } ===
        Seq(TechniqueReason.Failed))
    assert(Guard.failuresIn(spark).exists(_._2.contains("no statistics")))
  }
}

/** A table whose statistics cannot be computed. */
case class FailingStatistics(output: Seq[Attribute]) extends LeafNode {
  override def computeStats(): Statistics = throw new IllegalStateException("no statistics")
}
