package io.github.skewext.facts

import io.github.skewext.MultiJoinTest
import io.github.skewext.facts.StableRowsSuite._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql._
import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sources.{BaseRelation, TableScan}
import org.apache.spark.sql.types.{LongType, StructType}

/** The plans on the allow-list of stable plans, and others that are not on it. */
class StableRowsSuite extends MultiJoinTest {

  private def rows: DataFrame = spark
    .range(0, 20, 1, 2)
    .selectExpr("id % 4 AS k", "id AS v", "id / 3.0D AS d", "cast(id AS decimal(20,2)) AS m")

  private def isStable(df: DataFrame): Boolean = {
    val planned = StableRows.areIn(df.queryExecution.executedPlan)
    assert(StableRows.areInCopies(spark, df.queryExecution.analyzed) === planned, df.queryExecution)
    planned
  }

  private def stable(dfs: DataFrame*): Unit =
    dfs.foreach(df => assert(isStable(df), df.queryExecution.executedPlan))

  private def unstable(dfs: DataFrame*): Unit =
    dfs.foreach(df => assert(!isStable(df), df.queryExecution.executedPlan))

  private def unknown: DataFrame = {
    val df = spark.range(3).selectExpr("id AS k", "id AS v")
    spark.createDataFrame(df.rdd, df.schema)
  }

  test("files and literals are stable, other systems and RDDs are not") {
    withTempPath { path =>
      rows.write.parquet(path.toString)
      stable(spark.read.parquet(path.toString), rows, table("k", "(1), (2)"), spark.sql("SELECT 1"))
      withSQLConf("spark.sql.sources.useV1SourceList" -> "") {
        val v2 = spark.read.parquet(path.toString)
        assert(v2.queryExecution.sparkPlan.exists(_.isInstanceOf[BatchScanExec]))
        stable(v2)
      }
      unstable(spark.read.parquet(path.toString).withColumn("f", input_file_name()))
    }
    val other = spark.baseRelationToDataFrame(new OtherSystem(spark.sqlContext))
    assert(other.queryExecution.sparkPlan.exists(_.isInstanceOf[RowDataSourceScanExec]))
    unstable(other, unknown, unknown.where("v > 0").repartition(col("k")))
    stable(unknown.localCheckpoint())
    unstable(unknown.localCheckpoint(eager = false))
  }

  test("a cached plan is as stable as the plan that it caches") {
    for ((df, known) <- Seq(rows -> true, unknown -> false, rows.where(rand() < 0.5) -> false)) {
      val cached = df.cache()
      try {
        assert(isStable(cached.select("v")) === known)
        cached.count()
        assert(isStable(cached.select("v")) === known)
        val run = cached.repartition(col("k"))
        run.collect()
        assert(collect(run.queryExecution.executedPlan) { case c: InMemoryTableScanExec =>
          c
        }.nonEmpty)
        assert(isStable(run) === known)
      } finally {
        cached.unpersist()
      }
    }
  }

  test("deterministic expressions are stable, random values and limits are not") {
    val plusOne = udf((v: Long) => v + 1)
    stable(
      rows.select(plusOne(col("v")).as("w"), explode(array(col("v"), col("k"))).as("e")),
      rows.where("v > 3").union(rows),
      rows.coalesce(1),
      rows.sort("v"),
      rows.observe("seen", count(lit(1)).as("n")),
      rows.rollup("k").count())
    unstable(
      rows.withColumn("r", rand(3)),
      rows.where(rand() < 0.5),
      rows.withColumn("r", monotonically_increasing_id()),
      rows.withColumn("r", spark_partition_id()),
      rows.withColumn("r", plusOne.asNondeterministic()(col("v"))),
      rows.limit(5),
      rows.sort("k").limit(5),
      rows.sample(0.5, 1),
      rows.union(rows.limit(5)),
      rows.select("v").as[Long](Encoders.scalaLong).map(_ + 1)(Encoders.scalaLong).toDF(),
      rows
        .select("v")
        .as[Long](Encoders.scalaLong)
        .mapPartitions(_.take(1))(Encoders.scalaLong)
        .toDF(),
      spark.sql("SELECT TRANSFORM(id) USING 'cat' AS (t) FROM range(3)"))
  }

  test("a cipher with a random initialization vector is not stable") {
    unstable(rows.selectExpr("k", "aes_encrypt(string(v), '0000111122223333') AS e"))
    stable(rows.selectExpr("k", "aes_decrypt(string(v), '0000111122223333') AS e"))
  }

  test("aggregates are stable if they do not depend on the order of rows") {
    def grouped(aggregates: String*) =
      rows.groupBy("k").agg(expr(aggregates.head), aggregates.tail.map(expr(_)): _*)
    stable(
      grouped("count(1)", "sum(v)", "sum(m)", "avg(m)", "min(v)", "max(cast(v AS string))"),
      grouped("bit_and(v)", "bit_or(v)", "bit_xor(v)", "bool_or(v > 3)", "count_if(v > 3)"),
      grouped("approx_count_distinct(v)", "count(DISTINCT v)"),
      rows.distinct())
    for {
      aggregate <- Seq(
        "first(v)",
        "any_value(v)",
        "collect_list(v)",
        "collect_set(v)",
        "max_by(v, k)",
        "sum(d)",
        "avg(d)",
        "avg(v)",
        "try_sum(v)",
        "max(d)",
        "stddev(v)",
        "percentile(v, 0.5)")
    } unstable(grouped(aggregate))
    unstable(rows.dropDuplicates("k"))
    // 38 digits have no room for a sum that leaves the range and comes back.
    for (ansi <- Seq("true", "false")) withSQLConf(SQLConf.ANSI_ENABLED.key -> ansi) {
      stable(grouped("sum(cast(v AS decimal(28,2)))", "avg(cast(v AS decimal(28,2)))"))
      for (aggregate <- Seq("sum", "avg")) {
        val full = grouped(s"$aggregate(cast(v AS decimal(29,2)))")
        assert(isStable(full) === ansi.toBoolean, full.queryExecution.executedPlan)
      }
    }
  }

  test("windows are stable if rows with equal sort keys get equal values") {
    def over(function: String) =
      rows.selectExpr("*", s"$function OVER (PARTITION BY k ORDER BY d) AS w")
    stable(over("rank()"), over("count(1)"), over("rank()").where("w < 2"))
    unstable(
      over("row_number()"),
      over("lag(v)"),
      over("sum(d)"),
      over("row_number()").where("w < 2"))
  }

  test("joins and exchanges are stable if their children and keys are") {
    val other = rows.withColumnRenamed("v", "w").drop("d", "m")
    for (threshold <- Seq("-1", "10MB")) {
      withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> threshold) {
        stable(
          rows.join(other, "k"),
          rows.join(other.hint("shuffle_hash"), Seq("k"), "left"),
          rows.crossJoin(other),
          rows.join(other, col("v") < col("w"), "left"),
          fullJoin("k")(rows, other))
        unstable(rows.join(unknown, "k"), fullJoin("k")(rows, unknown.toDF("k", "w")))
      }
    }
    stable(rows.repartition(3), rows.repartition(3, col("k")), rows.repartitionByRange(3, col("v")))
    unstable(rows.repartition(3, rand()))
    withSQLConf("spark.sql.execution.sortBeforeRepartition" -> "false")(
      unstable(rows.repartition(3)))
  }

  test("a completed or reused stage is as stable as its plan") {
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      for ((input, known) <- Seq(rows -> true, unknown -> false)) {
        val counted = input.groupBy("k").count()
        val df = counted.join(counted.withColumnRenamed("count", "n"), "k")
        assert(isStable(df) === known)
        df.collect()
        val plan = df.queryExecution.executedPlan
        assert(collect(plan) { case r: ReusedExchangeExec => r }.nonEmpty, plan)
        assert(StableRows.areIn(plan) === known)
      }
    }
  }

  test("columns can be stable beside others that are not") {
    def isStable(df: DataFrame, columns: String*): Boolean = {
      val plan = df.queryExecution.executedPlan
      StableRows.areIn(plan, AttributeSet(plan.output.filter(a => columns.contains(a.name))))
    }
    def onlyKeys(dfs: DataFrame*): Unit = for (df <- dfs) {
      assert(isStable(df, "k"), df.queryExecution.executedPlan)
      assert(!isStable(df, df.columns: _*), df.queryExecution.executedPlan)
    }
    val random = rows.withColumn("r", rand(3))
    val other = rows.select(col("k"), col("v").as("w"))
    val ranked = row_number().over(Window.partitionBy("k").orderBy("d"))
    onlyKeys(
      random,
      rows.withColumn("r", monotonically_increasing_id()).repartition(3, col("k")),
      random.where("v > 3").sort("v").coalesce(1),
      random.union(rows.withColumn("r", lit(1.0d))),
      random.join(other, "k"),
      other.join(random, Seq("k"), "left"),
      rows.groupBy("k").agg(sum("d").as("s"), first("v").as("f")),
      rows.dropDuplicates("k"),
      rows.groupBy("k").agg(sum("d").as("s")).groupBy("k").agg(first("s").as("s")),
      rows.withColumn("n", ranked))
    for (df <- Seq(
        random.where("r > 0.5"),
        random.repartition(3, col("r")),
        // The partition of a row depends on its whole content.
        random.repartition(3),
        random.join(other, col("v") < col("r"), "left"),
        rows.withColumn("n", ranked).where("n < 2"),
        random.groupBy("k", "r").count(),
        random.limit(3),
        unknown)) {
      assert(!isStable(df, "k"), df.queryExecution.executedPlan)
    }
    val cached = random.cache()
    try onlyKeys(cached, cached.select(col("k"), col("r")))
    finally cached.unpersist()
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      val counted = random.groupBy("k").agg(sum("r").as("s"))
      val df = counted.join(counted.withColumnRenamed("s", "t"), "k")
      df.collect()
      val plan = df.queryExecution.executedPlan
      assert(collect(plan) { case r: ReusedExchangeExec => r }.nonEmpty, plan)
      onlyKeys(df)
    }
  }

  test("a plan is not stable if a subquery is not") {
    val first = "(SELECT first(v) FROM t)"
    rows.createOrReplaceTempView("t")
    assert(
      StableRows.areInCopies(
        spark,
        spark.sql("SELECT * FROM t WHERE v > (SELECT max(v) FROM t)").queryExecution.analyzed))
    assert(
      !StableRows
        .areInCopies(spark, spark.sql(s"SELECT * FROM t WHERE v > $first").queryExecution.analyzed))
  }

  test("a run-time Bloom filter of Spark's is stable") {
    withTempPath { path =>
      rows.write.parquet(path.toString)
      withSQLConf(
        SQLConf.RUNTIME_BLOOM_FILTER_ENABLED.key -> "true",
        SQLConf.RUNTIME_BLOOM_FILTER_APPLICATION_SIDE_SCAN_SIZE_THRESHOLD.key -> "0",
        SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1") {
        def read = spark.read.parquet(path.toString)
        val df = read.join(read.where("v > 12").select(col("k"), col("v").as("w")), "k")
        assert(df.queryExecution.optimizedPlan.toString.contains("bloom_filter_agg"))
        stable(df)
      }
    }
  }

  test("an unknown operator is not stable") {
    assert(!StableRows.areIn(UnknownExec(rows.queryExecution.sparkPlan)))
    assert(!StableRows.areIn(ProjectExec(Nil, UnknownExec(rows.queryExecution.sparkPlan))))
  }
}

object StableRowsSuite {

  /** A table that is read row by row, such as one of JDBC. */
  class OtherSystem(override val sqlContext: SQLContext) extends BaseRelation with TableScan {
    override def schema: StructType = new StructType().add("k", LongType).add("v", LongType)
    override def buildScan(): RDD[Row] = sqlContext.sparkContext.parallelize(Seq(Row(1L, 2L)))
  }

  case class UnknownExec(child: SparkPlan) extends UnaryExecNode {
    override def output: Seq[catalyst.expressions.Attribute] = child.output
    override protected def doExecute(): RDD[catalyst.InternalRow] = child.execute()
    override protected def withNewChildInternal(newChild: SparkPlan): UnknownExec =
      copy(child = newChild)
  }
}
