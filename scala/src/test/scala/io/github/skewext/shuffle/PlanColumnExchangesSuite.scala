package io.github.skewext.shuffle

import io.github.skewext.MultiJoinTest
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.functions._
import org.apache.spark.{SparkConf, SparkEnv}

/** Columnar shuffles of rows: when they are planned, and that nothing else changes. */
class PlanColumnExchangesSuite extends MultiJoinTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set("spark.plugins", classOf[NoPlugin].getName)

  private val On = SkewConf.SHUFFLE_ENABLED.key -> "true"
  private val NotOn = SkewConf.SHUFFLE_ENABLED.key -> "false"

  private def input(i: Int, rows: Int = 60): DataFrame = spark
    .range(0, rows.toLong, 1, 2)
    .select(
      when(col("id") % 11 =!= i, (col("id") * (i + 2)) % 23).as("k"),
      concat(lit("v"), col("id") + 1000 * i).as(s"v$i"))

  private def joined(n: Int): DataFrame = fullJoin("k")((0 until n).map(input(_)): _*)

  private def columnar(df: DataFrame): Int =
    exchanges(df).count(_.isInstanceOf[ColumnShuffleOfRowsExec])

  test("plans columnar shuffles by default, and Spark's exchanges if they are disabled") {
    withAdaptive {
      val df = joined(3)
      checkJoin(df)
      assert(exchanges(df).size === 3 && columnar(df) === 3)
      assert(exchanges(df).forall(_.simpleString(100).contains(ColumnShuffleExchangeExec.Mark)))
      withSQLConf(NotOn) {
        val off = again(df)
        checkJoin(off)
        assert(exchanges(off).size === 3 && columnar(off) === 0)
      }
    }
  }

  test("plans Spark's exchanges if a plugin that replaces them is loaded") {
    val conf = SparkEnv.get.conf
    val loaded = conf.get("spark.plugins")
    def check(plugins: String, replacing: Option[String]): Unit = withClue(plugins) {
      conf.set("spark.plugins", plugins)
      try {
        val df = joined(2)
        checkJoin(df)
        assert(columnar(df) === (if (replacing.isEmpty) 2 else 0))
        val why = exchanges(df).flatMap(RowShuffleReason.of(_))
        for (plugin <- replacing) {
          assert(why === Seq.fill(2)(RowShuffleReason.Plugins(s"spark.plugins names $plugin")))
        }
      } finally conf.set("spark.plugins", loaded)
    }
    check(loaded, None)
    check("io.dataflint.spark.SparkDataflintPlugin, com.nvidia.rapids.ml.Plugin", None)
    for (plugin <- Seq(
        "org.apache.spark.CometPlugin",
        "com.nvidia.spark.SQLPlugin",
        "org.apache.gluten.GlutenPlugin",
        "io.glutenproject.GlutenPlugin")) {
      check(plugin, Some(plugin))
      check(s"$loaded, $plugin", Some(plugin))
    }
  }

  for (n <- Seq(2, 3, 6))
    test(
      s"replaces all exchanges of $n inputs, with the same rows",
      Slow("6 inputs, with the same rows")) {
      withAdaptive {
        withSQLConf(On) {
          val df = checkFullJoin("k")((0 until n).map(input(_)): _*)
          assert(exchanges(df).size === n && columnar(df) === n)
        }
      }
    }

  test("Spark's exchange and a columnar shuffle of the same rows reuse each other", Slow) {
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      withAdaptive {
        for ((ours, sparks) <- Seq(
            (fullJoin("k")(input(0), input(1)), input(0).join(input(2), Seq("k"), "left")),
            (fullJoin("k")(input(1), input(0)), input(2).join(input(0), Seq("k"), "full")))) {
          val one = ours.select(col("k"), col("v0"), col("v1").as("v"))
          val other = sparks.select(col("k"), col("v0"), col("v2").as("v"))
          for (df <- Seq(one.union(other), other.union(one))) {
            checkJoin(df)
            assert(exchanges(df).size === 3, df.queryExecution.executedPlan)
            assert(df.queryExecution.executedPlan.toString.contains("ReusedExchange"))
          }
        }
      }
    }
  }

  test("replaces only exchanges directly below the join") {
    withAdaptive {
      withSQLConf(On) {
        val grouped = input(1).groupBy("k").agg(max("v1").as("v1"))
        val df = fullJoin("k")(input(0), grouped, input(2)).repartition(3, col("v0"))
        checkJoin(df)
        // The group-by's exchange is below an aggregate, and the user's is above the join.
        assert(exchanges(df).size === 4 && columnar(df) === 2)
      }
    }
  }

  test("reuses equal columnar shuffles") {
    withAdaptive {
      withSQLConf(On) {
        val one = input(0)
        val df = fullJoin("k")(one, input(1), one.withColumnRenamed("v0", "w0"))
        checkJoin(df)
        val reused = collectWithSubqueries(df.queryExecution.executedPlan) {
          case r: ReusedExchangeExec => r
        }
        assert(reused.size === 1, df.queryExecution.executedPlan)
      }
    }
  }

  test("adaptive execution reads sizes and coalesces partitions") {
    withSQLConf(
      On,
      "spark.sql.shuffle.partitions" -> "20",
      "spark.sql.adaptive.coalescePartitions.parallelismFirst" -> "false") {
      val df = joined(3)
      checkJoin(df)
      val plan = df.queryExecution.executedPlan
      val reads = collect(plan) { case r: AQEShuffleReadExec if r.hasCoalescedPartition => r }
      assert(reads.size === 3)
      val stages = collect(plan) { case s: ShuffleQueryStageExec => s }
      assert(stages.map(_.getRuntimeStatistics.rowCount).forall(_.contains(BigInt(60))))
      assert(stages.forall(_.getRuntimeStatistics.sizeInBytes > 60 * 16))
    }
  }

  test("writes more partitions than Spark writes to separate files", Slow) {
    withSQLConf(On, "spark.sql.shuffle.partitions" -> "300") {
      val df = fullJoin("k")(input(0, 2000), input(1, 3000))
      checkJoin(df)
      assert(columnar(df) === 2)
    }
  }

  test("writes inputs without rows, without partitions, and with large rows") {
    withAdaptive {
      withSQLConf(On) {
        val none = input(1).where("false")
        val noPartition = spark.emptyDataFrame.select(lit(1L).as("k"), lit("x").as("v2"))
        val large = spark.range(20).select(col("id").as("k"), repeat(lit("y"), 100000).as("v3"))
        checkJoin(fullJoin("k")(input(0), none, noPartition, large))
      }
    }
  }

  test("has the metrics of Spark's exchange") {
    val compared = Set("dataSize", "numPartitions", "shuffleRecordsWritten", "recordsRead")
    def metrics(df: DataFrame): Seq[Map[String, Long]] =
      exchanges(df).map(_.metrics.collect { case (name, m) if compared(name) => name -> m.value })
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      val on = joined(3)
      on.collect()
      assert(columnar(on) === 3)
      assert(metrics(on).forall(_("recordsRead") == 60))
      withSQLConf(NotOn) {
        val off = joined(3)
        off.collect()
        assert(columnar(off) === 0)
        assert(metrics(off) === metrics(on))
      }
    }
  }
}
