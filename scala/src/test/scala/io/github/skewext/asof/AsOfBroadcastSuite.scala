package io.github.skewext.asof

import io.github.skewext.StoredTables
import io.github.skewext.asof.exec.{AsOfJoinExec, BroadcastAsOfJoinExec}
import io.github.skewext.explain.Explainer
import io.github.skewext.nullkeys.SpreadNulls
import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.functions.{broadcast, col, count, max, udf}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.{DataFrame, Row}

/** As-of joins with small tables of versions, which are broadcast. */
class AsOfBroadcastSuite extends AsOfTest with StoredTables {

  override protected def generatesCode: Boolean = false

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SkewConf.MULTI_JOIN_BROADCAST.key, "true")

  private val Threshold = SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key

  private def events: DataFrame = stored(
    "events",
    spark.range(0, 500, 1, 3).selectExpr("if(id % 50 = 0, null, id % 40) AS k", "id AS t"))

  private def versions(name: String, rows: Int): DataFrame = stored(
    name,
    spark
      .range(0, rows, 1, 2)
      .selectExpr("id * 7 % 45 AS k", s"id * 11 % 500 AS ${name}_t", s"id AS $name"))

  private def a = versions("a", 60)
  private def b = versions("b", 80)
  private def large = versions("large", 5000)

  private def joined(how: String, spine: DataFrame, tables: DataFrame*): DataFrame =
    asOf(spine, "t", how)(tables.map(v => Versions(v, v.columns(1), "nearest")): _*)

  /** The same rows as by shuffles, and whether versions were broadcast. */
  private def isBroadcast(df: DataFrame): Boolean = {
    val rows = df.collect().toSeq
    withSQLConf(Threshold -> "-1") {
      val shuffled = SqlInternals.dataFrame(
        spark,
        df.queryExecution.analyzed.transform { case join: MultiAsOfJoin => join.copy(hints = Nil) })
      assertSameRows(rows, shuffled.collect().toSeq, "by shuffles")
      assert(joins(shuffled).size === 1)
    }
    asOfOperators(df).toList match {
      case List(_: BroadcastAsOfJoinExec) => true
      case List(_: AsOfJoinExec, _*) => false
      // Of an empty spine nothing is left.
      case Nil => true
    }
  }

  test("versions that are more than they were estimated are shuffled") {
    withSQLConf(Threshold -> "10000") {
      val rows = spark.range(2000).selectExpr("id % 1000 AS k", "id").groupBy("k").agg(max("id"))
      val grown = underestimated(max("k").as("g_t"))
      assert(!isBroadcast(asOf(rows.toDF("k", "t"), "t")(Versions(grown, "g_t", "nearest"))))
    }
  }

  test("versions that are more than estimated are shuffled when another broadcast has begun") {
    withSQLConf(Threshold -> "10000") {
      val rows = spark.range(2000).selectExpr("id % 1000 AS k", "id").groupBy("k").agg(max("id"))
      val grown = underestimated(max("k").as("g_t"))
      for (how <- Seq("left", "inner")) {
        val df = asOf(rows.toDF("k", "t"), "t", how)(
          Versions(a, "a_t", "nearest"),
          Versions(grown, "g_t", "nearest"),
          Versions(b, "b_t", "backward"))
        assert(!isBroadcast(df))
        assert(joins(df).map(_.children.size) === Seq(2), df.queryExecution.executedPlan)
        val broadcast = asOfOperators(df).collect { case join: BroadcastAsOfJoinExec => join }
        assert(broadcast.map(_.children.size) === Seq(3), df.queryExecution.executedPlan)
      }
    }
  }

  test("versions that the query caches first are broadcast if they are few") {
    withSQLConf("spark.sql.adaptive.enabled" -> "true", Threshold -> "2000") {
      val cached = Seq(slowly(events, "t"), large.where("large % 200 = 7")).map(_.cache())
      try assert(isBroadcast(joined("left", cached.head, cached.last)))
      finally cached.foreach(_.unpersist(blocking = true))
    }
  }

  private def explained(df: DataFrame): String = {
    val found = SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution))
    (found.toString +: found.joins.flatMap(_.inputs).flatMap(_.hint)).mkString("\n")
  }

  test("small tables of versions are broadcast, by size or hint, and nothing is shuffled", Slow) {
    for (how <- Seq("left", "inner")) withAdaptive {
      withSQLConf(Threshold -> "100KB") {
        val df = joined(how, events, a, b)
        assert(isBroadcast(df) && exchanges(df).isEmpty)
        assert(explained(df).contains("as-of join with 2 broadcast tables"))
      }
      val hinted = joined(how, events, broadcast(large), broadcast(b))
      assert(isBroadcast(hinted) && exchanges(hinted).isEmpty)
    }
  }

  test(
    "the spine is shuffled for a large table, for its own hints, or if the switch is off",
    Slow) {
    withSQLConf(Threshold -> "4KB") {
      val mixed = joined("left", events, broadcast(a), large)
      assert(!isBroadcast(mixed) && exchanges(mixed).size === 3)
      assert(explained(mixed).contains("broadcast not used (another table is not broadcast"))
      val ofSpine = joined("left", broadcast(events), large)
      assert(!isBroadcast(ofSpine))
      assert(explained(ofSpine).contains("broadcast not used (the spine gives the rows"))
      assert(!isBroadcast(joined("left", events, a.hint("merge"))))
      val forbidden = joined("left", events.hint("merge"), broadcast(a))
      assert(!isBroadcast(forbidden))
      assert(explained(forbidden).contains("broadcast not used (the spine has a hint against it"))
      assert(isBroadcast(joined("left", events, a)))
    }
    withSQLConf(Threshold -> "100KB", SkewConf.MULTI_JOIN_BROADCAST.key -> "false") {
      assert(!isBroadcast(joined("left", events, a)))
      assert(isBroadcast(joined("left", events, broadcast(a))))
    }
  }

  test("a broadcast of versions that has begun does not keep the rest of the plan as it was") {
    val isFirst = udf((n: Long) => n < 40)
    withSQLConf(Threshold -> "4KB") {
      val few = large.where(isFirst(col("large"))).selectExpr("k", "large AS n")
      val df = joined("left", events.join(few, "k"), a)
      assert(isBroadcast(df))
      val plan = df.queryExecution.executedPlan
      assert(collect(plan) { case join: BroadcastHashJoinExec => join }.size === 1, plan)
      assert(!plan.toString.contains("BegunBroadcast"))
    }
  }

  test("above a begun broadcast, rows with a null key are spread by their values", Slow) {
    withSQLConf(Threshold -> "4KB", SkewConf.MULTI_JOIN_BROADCAST.key -> "false") {
      val df = fullJoin("k")(joined("left", events, broadcast(a)), large, b)
      checkJoin(df)
      val plan = df.queryExecution.executedPlan
      assert(collect(plan) { case join: BroadcastAsOfJoinExec => join }.size === 1, plan)
      val values = exchanges(df).map(_.outputPartitioning).collect { case keys: Expression =>
        keys.collect { case spread: SpreadNulls => spread.values }
      }
      assert(values.flatten.nonEmpty && values.flatten.forall(_.nonEmpty), plan)
    }
  }

  test("adaptive execution plans again above and below, and with a spine of any kind", Slow) {
    withSQLConf(Threshold -> "100KB", SQLConf.SHUFFLE_PARTITIONS.key -> "4") {
      val counted = events.groupBy("k").agg(count("t").as("n"), max("t").as("t"))
      for {
        (name, spine) <- Seq(
          "an aggregate" -> counted,
          "a repartition" -> events.repartition(3, col("k")),
          "a sorted one" -> events.repartition(3, col("k")).sortWithinPartitions("k", "t"),
          "a join" -> events.join(b.selectExpr("k", "b AS n"), "k"),
          "no row" -> events.where("t < 0"),
          "no partition" -> spark.createDataFrame(spark.sparkContext.emptyRDD[Row], events.schema))
      } withClue(s"$name: ") {
        val df = joined("left", spine, a)
        assert(isBroadcast(df))
        // A task that sorts would sort all versions.
        assert(asOfOperators(df).forall(_.groupsByHash))
        val above = df.groupBy("k").agg(count("a").as("found"))
        assert(isBroadcast(above))
        if (name == "a repartition") assert(exchanges(above).size === 1)
      }
    }
  }
}
