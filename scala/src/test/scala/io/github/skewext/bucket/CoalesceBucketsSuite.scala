package io.github.skewext.bucket

import io.github.skewext.{Guard, SkewConf}

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf

/** Tables with different numbers of buckets are joined without a shuffle, or with fewer. */
class CoalesceBucketsSuite extends BucketScanTest {

  private val SparksSwitch = SQLConf.COALESCE_BUCKETS_IN_JOIN_ENABLED.key
  private val Ratio = SQLConf.COALESCE_BUCKETS_IN_JOIN_MAX_BUCKET_RATIO.key
  private val counts = Seq(4, 8, 32)

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key, "-1")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    counts.zipWithIndex.foreach { case (n, i) => save(input(i), s"t$n", n, "k") }
    save(input(3), "t6", 6, "k")
    save(input(1), "two8", 8, "k", "l")
    save(input(2), "two16", 16, "l", "k")
    save(input(2), "two32", 32, "k", "l")
  }

  override protected def afterAll(): Unit =
    try {
      Seq("t4", "t8", "t32", "t6", "two8", "two16", "two32").foreach { name =>
        sql(s"DROP TABLE IF EXISTS $name")
      }
    } finally super.afterAll()

  private def input(i: Int): DataFrame = spark
    .range(0, 60, 1, 1)
    .select(
      when(col("id") % 9 =!= i, (col("id") * (i + 2)) % 23 - 5).as("k"),
      (col("id") % 4).as("l"),
      (col("id") + 100 * i).as(s"v$i"))

  private def tables: Seq[DataFrame] = counts.map(n => spark.table(s"t$n"))

  private def eachMode(f: => Unit): Unit =
    for (mode <- Seq(Nil, Seq(Static))) withSQLConf(mode: _*)(f)

  private def coalesced(df: DataFrame): Seq[Option[Int]] =
    scans(df).map(_.optionalNumCoalescedBuckets)

  test("three tables of 4, 8 and 32 buckets: no exchange") {
    withSQLConf(Ratio -> "8") {
      eachMode {
        val df = fullJoin("k")(tables.map(_.drop("l")): _*)
        checkJoin(df)
        assert(exchanges(df).isEmpty)
        assert(coalesced(df) === Seq(None, Some(4), Some(4)))
        assert(operator(df).outputPartitioning.numPartitions === 4)
        assert(df.rdd.getNumPartitions === 4)
        assert(explained(df, "t32").partitions === Some(4))
        // Grouped and joined by the key above, with what is said of the join's partitions.
        val grouped = df.groupBy("k").agg(count("*").as("n"))
        checkJoin(grouped)
        assert(exchanges(grouped).isEmpty)
        val joined = fullJoin("k")(df, spark.table("t8").select(col("k"), col("v1").as("x")))
        checkJoin(joined)
        assert(exchanges(joined).isEmpty)
        for (roles <- Seq(
            Seq("required", "optional", "excluded"),
            Seq("required", "required", "required"))) {
          val df = multiJoin(tables.map(_.drop("l")), Seq("k"), roles = roles)
          checkJoin(df)
          assert(exchanges(df).isEmpty)
        }
      }
    }
  }

  test("within Spark's ratio the smallest table is shuffled, and only that") {
    eachMode {
      val df = fullJoin("k")(tables.map(_.drop("l")): _*)
      checkJoin(df)
      assert(exchanges(df).map(_.outputPartitioning.numPartitions) === Seq(8))
      assert(operator(df).outputPartitioning.numPartitions === 8)
      assert(scans(df).map(_.optionalNumCoalescedBuckets) === Seq(None, None, Some(8)))
    }
  }

  test("above a join that is yet to be shuffled") {
    eachMode {
      val Seq(t4, t8, t6) = Seq("t4", "t8", "t6").map(spark.table(_).drop("l"))
      checkAnswer(t6.join(t4, "k").join(t8, "k"))
      // The rule found nothing to do, and did not fail.
      assert(!Guard.failures.exists(_.contains(CoalesceBuckets.ruleName)))
    }
  }

  test("tables that are not bucketed are shuffled into as many") {
    withSQLConf(Ratio -> "8") {
      eachMode {
        val plain = input(4).drop("l")
        val df = fullJoin("k")(plain +: tables.map(_.drop("l")): _*)
        checkJoin(df)
        assert(exchanges(df).map(_.outputPartitioning.numPartitions) === Seq(4))
      }
    }
  }

  test("counts that do not divide each other") {
    eachMode {
      // 6 are shuffled, as 8 and 32 make two that stay.
      val df = fullJoin("k")((tables.tail :+ spark.table("t6")).map(_.drop("l")): _*)
      checkJoin(df)
      assert(exchanges(df).map(_.outputPartitioning.numPartitions) === Seq(8))
      val none = fullJoin("k")(spark.table("t8").drop("l"), spark.table("t6").drop("l"))
      checkJoin(none)
      assert(coalesced(none) === Seq(None, None))
      assert(exchanges(none).size === 1)
      assert(explained(none, "t8").notFewer.exists(_.startsWith(BucketReason.CountsApart.text)))
      assert(explained(df, "t6").notFewer.exists(_.startsWith(BucketReason.CountsApart.text)))
      assert(explained(df, "t32").notFewer.isEmpty)
    }
  }

  test("filters, projections, aggregates and pruned buckets below the join") {
    withSQLConf(Ratio -> "8") {
      eachMode {
        val inputs = Seq(
          spark.table("t4").groupBy("k").agg(sum("v0").as("s")),
          spark.table("t8").where("l > 1").select(col("k"), (col("v1") * 2).as("w")),
          spark.table("t32").withColumnRenamed("k", "j").select("v2", "j"))
        val df = multiJoin(inputs, Seq("k"), keys = Seq(Seq("k"), Seq("k"), Seq("j")))
        checkJoin(df)
        assert(exchanges(df).isEmpty)
        val pruned = df.where("k IN (1, 3)")
        assert(checkJoin(pruned).nonEmpty)
        assert(exchanges(pruned).isEmpty)
        assert(scans(pruned).forall(bucketsRead(_).size <= 2))
      }
    }
  }

  test("Spark's joins, of all types") {
    eachMode {
      for (how <- Seq("inner", "full", "left", "right", "left_semi", "left_anti")) {
        val df = spark.table("t8").drop("l").join(spark.table("t32").drop("l"), Seq("k"), how)
        checkAnswer(df)
        assert(collect(df.queryExecution.executedPlan) { case j: SortMergeJoinExec =>
          j
        }.size === 1)
        assert(exchanges(df).isEmpty, how)
        assert(coalesced(df) === Seq(None, Some(8)))
      }
      // Hash tables are not made larger.
      val t8 = spark.table("t8").drop("l")
      val t32 = spark.table("t32").drop("l")
      def hashJoin(left: DataFrame, right: DataFrame): DataFrame = {
        val df = left.join(right.hint("shuffle_hash"), "k")
        checkAnswer(df)
        assert(collect(df.queryExecution.executedPlan) { case j: ShuffledHashJoinExec =>
          j
        }.size === 1)
        df
      }
      assert(exchanges(hashJoin(t32, t8)).isEmpty)
      assert(exchanges(hashJoin(t8, t32)).size === 1)
    }
  }

  test("joins above each other") {
    withSQLConf(Ratio -> "8") {
      eachMode {
        val df = tables.map(_.drop("l")).reduceLeft(_.join(_, "k"))
        checkAnswer(df)
        assert(exchanges(df).isEmpty)
      }
    }
  }

  test("keys of several columns, in the order of the buckets") {
    eachMode {
      val df = fullJoin("k", "l")(spark.table("two8"), spark.table("two32"))
      checkJoin(df)
      assert(exchanges(df).isEmpty && coalesced(df) === Seq(None, Some(8)))
      // Spark puts the keys of its joins in the order of the buckets.
      val swapped = spark.table("two8").join(spark.table("two32"), Seq("l", "k"))
      checkAnswer(swapped)
      assert(exchanges(swapped).isEmpty)
      // Other orders are other buckets.
      for (other <- Seq(
          spark.table("two8").join(spark.table("two16"), Seq("k", "l")),
          fullJoin("k", "l")(spark.table("two8"), spark.table("two16")))) {
        checkAnswer(other)
        assert(coalesced(other) === Seq(None, None))
        assert(exchanges(other).size === 1)
        assert(explained(other).forall(_.notFewer.exists(_.startsWith(BucketReason.KeyOrder.text))))
      }
      // Not by all keys of the join.
      val more = spark.table("t8").join(spark.table("t32"), Seq("k", "l"))
      checkAnswer(more)
      assert(coalesced(more) === Seq(None, None))
    }
  }

  test("switched off, and where Spark's own setting is set") {
    eachMode {
      def two = spark.table("t8").drop("l").join(spark.table("t32").drop("l"), "k")
      def many = fullJoin("k")(spark.table("t8").drop("l"), spark.table("t32").drop("l"))
      withSQLConf(SkewConf.BUCKET_COALESCE.key -> "false") {
        for (df <- Seq(two, many)) {
          checkAnswer(df)
          assert(exchanges(df).size === 1 && coalesced(df).flatten.isEmpty)
        }
      }
      withSQLConf(SparksSwitch -> "false") {
        assert(exchanges(two).size === 1 && exchanges(many).isEmpty)
      }
      withSQLConf(SparksSwitch -> "true") {
        assert(exchanges(two).isEmpty && exchanges(many).isEmpty)
      }
      withSQLConf(SQLConf.BUCKETING_ENABLED.key -> "false") {
        assert(exchanges(two).size === 2 && exchanges(many).size === 2)
      }
    }
  }

  test("an aggregate that brings its own partitions is left to Spark, until it is done") {
    val grouped = spark.range(0, 60, 1, 2).selectExpr("id % 23 AS k").groupBy("k").count()
    def df = fullJoin("k")(grouped, spark.table("t8").drop("l"), spark.table("t32").drop("l"))
    withSQLConf(Static) {
      val static = df
      checkJoin(static)
      assert(coalesced(static).flatten.isEmpty)
      val why = explained(static, "t32").notFewer
      assert(why.exists(_.startsWith(BucketReason.OtherPartitions.text)))
    }
    val adaptive = df
    assert(coalesced(adaptive).flatten.isEmpty)
    checkJoin(adaptive)
    assert(exchanges(adaptive).size <= 3)
  }
}
