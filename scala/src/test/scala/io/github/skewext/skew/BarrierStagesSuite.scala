package io.github.skewext.skew

import io.github.skewext.explain.{Explainer, Explanation}
import io.github.skewext.platform.{Reason, SkewConf}
import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.skew.run.SplitJoinExec
import io.github.skewext.technique.TechniqueReason
import io.github.skewext.technique.hint.TechniqueHint
import io.github.skewext.{Joins, Technique}

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.joins.SortMergeJoinExec
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

  private def explanation(df: DataFrame): Explanation =
    SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution))

  private def explained(df: DataFrame): Seq[String] =
    explanation(df).joins.flatMap(_.skew).map(_.text)

  /** Left whole, and only for the operator above. */
  private def checkWholeBelow(df: DataFrame): Unit = {
    val below = barrier(df)
    checkWhole(below)
    assert(reasons(below) === Seq(SkewReason.BarrierStage))
    assert(explained(below) === Seq(SkewReason.BarrierStage.text))
  }

  test("a full join below a barrier operator is left whole", Slow) {
    for (join <- Seq(sparksJoin, multiJoin)) {
      checkWholeBelow(join)
      checkWholeBelow(join.where("coalesce(v0, 9) > 3").select("k", "v0", "v1"))
      checkSplit(map(join, isBarrier = false))
    }
  }

  test("joins below other joins of the stage of a barrier operator are left whole", Slow) {
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

  test("a join whose rows are shuffled before the barrier operator is split", Slow) {
    for (join <- Seq(sparksJoin, multiJoin)) {
      checkSplit(barrier(join.repartition(2)))
      checkSplit(barrier(join.groupBy((col("v0") % 3).as("g")).agg(count("*").as("n"))))
    }
  }

  test("buckets of a join below a barrier operator are read whole", Slow) {
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

  test("a join of buckets in the stage of a barrier operator has as many tasks as Spark's", Slow) {
    withTable("t2", "t4", "u2") {
      skewed(0, 200).write.bucketBy(2, "k").saveAsTable("t2")
      skewed(1, 200).write.bucketBy(4, "k").saveAsTable("t4")
      skewed(2, 200).write.bucketBy(2, "k").saveAsTable("u2")
      for (names <- Seq(Seq("t2", "u2"), Seq("t2", "t4"), Seq("t2", "u2", "t4"))) {
        val tables = names.map(spark.table)
        def tasks(df: DataFrame) = df.queryExecution.toRdd.getNumPartitions
        val ours = fullJoin("k")(tables: _*)
        assert(operators(ours).nonEmpty)
        assert(tasks(ours) <= tasks(stockChain("k")(tables: _*)), names)
      }
      checkWhole(barrier(fullJoin("k")(spark.table("t2"), spark.table("u2"))))
    }
  }

  private def byTechnique(name: String, how: String, options: (String, String)*): DataFrame =
    Joins.skewJoin(
      skewed(0, 200),
      skewed(1, 60),
      Left(Seq("k")),
      how,
      Technique(name, options.toMap))

  private def techniques(df: DataFrame): Seq[TechniqueHint.Content] =
    df.queryExecution.optimizedPlan.collect { case node => TechniqueHint.of(node) }.flatten

  test("techniques whose plan is a union are refused in the stage of a barrier operator", Slow) {
    for (join <- Seq(
        byTechnique("broadcast_map", "full"),
        byTechnique("iterative_broadcast", "full", "chunks" -> "2"),
        byTechnique("broadcast_map", "full").join(skewed(2, 9).hint("broadcast"), Seq("k")))) {
      val below = barrier(join)
      checkWhole(below)
      assert(techniques(below).collect {
        case TechniqueHint.Refused(_, Reason.Detailed(reason, _)) => reason
      } === Seq(TechniqueReason.BarrierStage))
      val origins = explanation(below).joins.map(_.origin.text)
      assert(origins.exists(_.endsWith(TechniqueReason.BarrierStage.text)), origins)
      for (other <- Seq(barrier(join.repartition(2)), map(join, isBarrier = false))) {
        assertSameRows(other.collect().toSeq, rowsWhenOff(other), "Spark's own join")
        assert(techniques(other).exists(_.isInstanceOf[TechniqueHint.Made]))
      }
    }
  }

  test("techniques whose plan has one part run in the stage of a barrier operator") {
    for ((technique, how, side) <- Seq(
        ("iterative_broadcast", "left", "right"),
        ("broadcast_map", "left_semi", "left"))) {
      val join = Joins.skewJoin(
        skewed(0, 60, maps = 2),
        skewed(1, 60, maps = 2),
        Left(Seq("k")),
        how,
        Technique(technique, Map("side" -> side)))
      checkWhole(barrier(join))
      assert(techniques(barrier(join)).exists(_.isInstanceOf[TechniqueHint.Made]))
    }
  }

  test("a join in a cache is split where Spark would split its own", Slow) {
    def isSplit(df: DataFrame)(split: PartialFunction[SparkPlan, Boolean]): Boolean = {
      val cached = df.cache()
      try {
        cached.collect()
        collect(cached.queryExecution.executedPlan) { case scan: InMemoryTableScanExec =>
          collect(scan.relation.cachedPlan)(split).contains(true)
        }.contains(true)
      } finally cached.unpersist(blocking = true)
    }
    for (changes <- Seq("true", "false")) {
      withSQLConf("spark.sql.optimizer.canChangeCachedPlanOutputPartitioning" -> changes) {
        val left = skewed(0, 800, hot = 2).join(skewed(1, 60).hint("merge"), Seq("k"), "left")
        var sparks = false
        withSQLConf(Off) {
          sparks = isSplit(left) { case join: SortMergeJoinExec => join.isSkewJoin }
        }
        for (join <- Seq(sparksJoin, multiJoin)) {
          assert(isSplit(join) { case _: SplitJoinExec => true } === sparks, changes)
        }
      }
    }
  }
}
