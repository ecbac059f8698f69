package io.github.skewext.skew

import io.github.skewext.explain.Explainer
import io.github.skewext.internal.SkewConf
import io.github.skewext.plan.SkewReason

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{BarrierMap, SqlInternals}

/** Joins in stages whose tasks all run at the same time: there are two slots, and no task more. */
class BarrierStagesSuite extends SkewTest {

  override protected val shufflePartitions = 2

  override protected def sparkConf: SparkConf = super.sparkConf
    // Spark waits for slots, and asks again.
    .set("spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures", "1")
    .set("spark.scheduler.barrier.maxConcurrentTasksCheck.interval", "1s")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    // Of two partitions one is not twice the median.
    spark.conf.set(Factor, "1")
    spark.experimental.extraStrategies = Seq(BarrierMap.Strategy)
  }

  private def map(df: DataFrame, isBarrier: Boolean): DataFrame =
    SqlInternals.dataFrame(spark, BarrierMap(df.queryExecution.analyzed, isBarrier))

  private def barrier(df: DataFrame): DataFrame = map(df, isBarrier = true)

  private def sparksJoin: DataFrame =
    skewed(0, 800, hot = 2).join(skewed(1, 60).hint("merge"), Seq("k"), "full")

  private def multiJoin: DataFrame = fullJoin("k")(hotFirst(3): _*)

  private def explained(df: DataFrame): Seq[String] =
    SqlInternals
      .withActive(spark)(Explainer.explain(df.queryExecution))
      .joins
      .flatMap(_.skew)
      .map(_.text)

  /** Left whole, and only for the operator above. */
  private def checkWholeBelow(df: DataFrame): Unit = {
    checkWhole(barrier(df))
    val below = barrier(df)
    below.collect()
    assert(reasons(below) === Seq(SkewReason.BarrierStage))
    assert(explained(below) === Seq(SkewReason.BarrierStage.text))
  }

  test("a full join below a barrier operator is left whole") {
    for (join <- Seq(sparksJoin, multiJoin)) {
      checkWholeBelow(join)
      checkWholeBelow(join.where("coalesce(v0, 9) > 3").select("k", "v0", "v1"))
      checkSplit(map(join, isBarrier = false))
    }
  }

  test("joins below other joins of the stage of a barrier operator are left whole") {
    val few = skewed(7, 40).withColumnRenamed("k", "kk")
    def joined(join: DataFrame, hint: String) =
      join.join(few.hint(hint), col("k") === col("kk"), "left")
    for (df <- Seq(
        joined(sparksJoin, "broadcast"),
        joined(multiJoin, "broadcast"),
        // Without an exchange in between, as the rows come by the key.
        joined(multiJoin, "merge"))) {
      checkWhole(barrier(df))
      checkSplit(map(df, isBarrier = false))
    }
  }

  test("a join whose rows are shuffled before the barrier operator is split") {
    for (join <- Seq(sparksJoin, multiJoin)) {
      checkSplit(barrier(join.repartition(2)))
      checkSplit(barrier(join.groupBy((col("v0") % 3).as("g")).agg(count("*").as("n"))))
    }
  }

  test("a join below a barrier operator is not split by force") {
    withSQLConf(
      Force -> "true",
      "spark.sql.adaptive.customCostEvaluatorClass" -> classOf[SkewJoinCostEvaluator].getName) {
      checkWhole(barrier(multiJoin.groupBy("k").agg(count("*").as("n"))))
    }
  }

  test("buckets of a join below a barrier operator are read whole") {
    withTable("hot", "few") {
      skewed(0, 2000, hot = 2).write.bucketBy(2, "k").saveAsTable("hot")
      skewed(1, 200, keys = 100).write.bucketBy(2, "k").saveAsTable("few")
      withSQLConf(SkewConf.SKEW_MIN_GAIN.key -> "1.0") {
        val join = spark.table("hot").join(spark.table("few").hint("merge"), Seq("k"), "full")
        checkWholeBelow(join)
        checkSplit(map(join, isBarrier = false))
      }
    }
  }
}
