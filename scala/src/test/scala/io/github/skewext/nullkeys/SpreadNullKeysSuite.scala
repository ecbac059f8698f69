package io.github.skewext.nullkeys

import java.util.concurrent.atomic.AtomicInteger

import io.github.skewext.MultiJoinTest
import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.platform.Guard

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{DataFrame, Row}

class SpreadNullKeysSuite extends MultiJoinTest {

  /** A cached table that is partitioned by k, in so many partitions. */
  private def cached(i: Int, partitions: Int): DataFrame = {
    var df = spark.emptyDataFrame
    withSQLConf("spark.sql.shuffle.partitions" -> partitions.toString) {
      df = spark
        .range(40)
        .selectExpr("id % 7 AS k", "if(id % 3 = 0, null, id % 5) AS j", "id")
        .groupBy("k")
        .agg(max("j").as("j"), sum("id").as(s"v$i"))
        .cache()
      df.count()
    }
    df
  }

  test("spreads null keys above a join of tables with different numbers of partitions") {
    withSQLConf(
      "spark.sql.adaptive.enabled" -> "true",
      "spark.sql.autoBroadcastJoinThreshold" -> "-1",
      "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning" -> "false") {
      try {
        val below = cached(0, 3).join(cached(1, 4).drop("j"), Seq("k"))
        val df = fullJoin("j")(below, cached(2, 5).drop("k"), cached(3, 2).drop("k"))
        checkJoin(df)
        assert(operator(df).spreadNullKeys, df.queryExecution.executedPlan)
        assert(!Guard.failures.exists(_.contains(SpreadNullKeys.ruleName)), Guard.failures)
      } finally spark.catalog.clearCache()
    }
  }

  test("spreads null keys beside ranges, which never save a shuffle") {
    withSQLConf("spark.sql.adaptive.enabled" -> "true") {
      def withNulls = spark.range(40).selectExpr("nullif(id % 7, 3) AS k", "id AS v0")
      for (ranges <- Seq(
          spark.range(0, 9, 1, 4).selectExpr("id AS k", "id AS v1"),
          withNulls.repartitionByRange(3, col("k")).withColumnRenamed("v0", "v1"))) {
        val df = fullJoin("k")(withNulls, ranges)
        checkJoin(df)
        assert(operator(df).spreadNullKeys, df.queryExecution.executedPlan)
      }
    }
  }

  test("spreads null keys below operators that cannot use the partitions by key", Slow) {
    withSQLConf("spark.sql.adaptive.enabled" -> "true") {
      def nulls(i: Int) = spark
        .range(60)
        .selectExpr("if(id % 2 = 0, null, id % 7) AS k", s"id AS v$i", s"id % 5 AS w$i")
      def joined = fullJoin("k")(nulls(0), nulls(1), nulls(2))
      val byAnother = Window.partitionBy("w0").orderBy("v0", "v1", "v2")
      for ((name, build, spreads) <- Seq[(String, DataFrame => DataFrame, Boolean)](
          ("order by", _.orderBy("v0", "v1", "v2"), true),
          ("group by another column", _.groupBy("w0").agg(count("k"), sum("v1")), false),
          ("group by the key", _.groupBy("k").agg(count("*"), sum("v1")), false),
          ("group by the key and more", _.groupBy("k", "w0").agg(sum("v1")), false),
          ("count", _.agg(count("w1"), sum("v1")), true),
          ("limit", _.limit(1 << 30), true),
          // Adaptive execution removes the limit.
          ("group by the key above a limit", _.limit(1 << 30).groupBy("k").count(), false),
          ("window by another column", _.withColumn("n", row_number().over(byAnother)), false),
          ("window by the key", _.withColumn("n", count("*").over(Window.partitionBy("k"))), false),
          (
            "join by another column",
            _.join(nulls(3).drop("k").hint("merge"), col("w0") === col("w3")),
            false),
          ("join by the key", _.join(nulls(3).hint("merge"), Seq("k"), "left"), false),
          ("repartition", _.repartition(3), true),
          ("repartition by another column", _.repartition(3, col("w0")), false),
          ("repartition by the key", _.repartition(col("k")), false),
          ("range", _.repartitionByRange(3, col("k")), true),
          (
            "group by another column of rows in order",
            _.repartitionByRange(3, col("k")).groupBy("w0").count(),
            true))) withClue(s"$name: ") {
        val df = build(joined)
        checkJoin(df)
        assert(operator(df).spreadNullKeys === spreads, df.queryExecution.executedPlan)
      }
    }
  }

  test("a CTE that Spark computes once has one plan, in subqueries too") {
    withSQLConf(
      "spark.sql.adaptive.enabled" -> "true",
      "spark.sql.autoBroadcastJoinThreshold" -> "-1",
      "spark.skewext.multiJoin.rewrite.enabled" -> "true")(withTempView("a", "b", "c", "d") {
      for ((name, i) <- Seq("a", "b", "c", "d").zipWithIndex)
        spark
          .range(40 + i)
          .selectExpr("if(id % 2 = 0, null, id % 7) AS k")
          .createOrReplaceTempView(name)
      val df = sql("""WITH v AS (SELECT rand() r FROM a FULL JOIN b USING (k) FULL JOIN c USING (k))
        |SELECT max(r) = (SELECT max(r) FROM v)
        |FROM (SELECT r FROM v UNION ALL SELECT 0.0D FROM a LEFT JOIN d ON a.k = d.k)""".stripMargin)
      assert(df.collect().toSeq === Seq(Row(true)), df.queryExecution.executedPlan)
      assert(operators(df).nonEmpty)
    })
  }

  test("two uses of a join share their shuffles") {
    withSQLConf("spark.sql.adaptive.enabled" -> "true") {
      def nulls(i: Int) =
        spark.range(60 + i).selectExpr("if(id % 2 = 0, null, id % 7) AS k", s"id % 5 AS v$i")
      val joined = fullJoin("k")(nulls(0), nulls(1))
      val grouped = joined.groupBy("k").agg(max("v0").as("m0"), max("v1").as("m1"))
      val sorted = joined.select("v0", "v1", "k").sort("v0", "v1", "k")
      val df = grouped.union(sorted)
      checkJoin(df)
      assert(operators(df).forall(!_.spreadNullKeys), df.queryExecution.executedPlan)
      assert(exchanges(df).count(_.outputPartitioning.isInstanceOf[HashPartitioning]) === 2)
    }
  }

  test("plans the exchanges of each input once") {
    val spread = fullJoin("k")(
      (0 until 3).map(i => spark.range(9).selectExpr("nullif(id, 3) AS k", s"id AS v$i")): _*)
    val join = spread.queryExecution.sparkPlan.collectFirst { case j: MultiFullJoinExec => j }.get
    val inputs = join.children.map(CountingExec(_))
    val changed = SpreadNullKeys(join.withNewChildren(inputs))
    assert(changed.asInstanceOf[MultiFullJoinExec].spreadNullKeys)
    assert(inputs.map(_.asked.get) === Seq(1, 1, 1))
  }
}

/** Counts how often its partitioning is computed. */
private case class CountingExec(child: SparkPlan) extends UnaryExecNode {

  @transient val asked = new AtomicInteger

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = {
    asked.incrementAndGet()
    UnknownPartitioning(0)
  }

  override protected def doExecute(): RDD[InternalRow] = child.execute()

  override protected def withNewChildInternal(newChild: SparkPlan): CountingExec =
    if (newChild eq child) this else copy(child = newChild)
}
