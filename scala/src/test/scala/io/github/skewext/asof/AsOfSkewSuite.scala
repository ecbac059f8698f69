package io.github.skewext.asof

import java.util.concurrent.ConcurrentLinkedQueue

import scala.collection.JavaConverters._

import io.github.skewext.asof.exec.AsOfJoinExec
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.SkewTest
import io.github.skewext.skew.SplitRetriesSuite.{TaskFails, Watched, readInAnyOrder, watched}
import io.github.skewext.skew.plan.{SkewReason, SkewSplits, SplitTask}
import io.github.skewext.skew.run.{SplitOperator, SplitReadSpecs}

import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.execution.joins.SortMergeJoinExec
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{RetriedTasks, TestSessions, TestShuffles}

/** As-of joins with hot keys. */
class AsOfSkewSuite extends SkewTest with AsOfTest with RetriedTasks {

  /** Half of its rows have one key, and some none. Their time is v0. */
  private def hotSpine(maps: Int = 4): DataFrame = skewed(0, 1600, hot = 2, maps = maps)

  /** Versions of all keys, several of each, some of one time. Their time is at1 for i = 1. */
  private def versions(i: Int, rows: Int = 120, hot: Int = 0, maps: Int = 4): DataFrame =
    skewed(i, rows, hot, keys = 20, maps = maps)
      .withColumn(s"at$i", (col(s"v$i") * 37 % 90 * 17).cast("int"))

  private def joined(spine: DataFrame, how: String = "left"): DataFrame =
    asOf(spine, "v0", how)(
      Versions(versions(1), "at1"),
      Versions(versions(2), "at2", "nearest", tolerance = "300"))

  private def splitsOf(df: DataFrame): Seq[SkewSplits] = joins(df).collect {
    case SplitOperator(splits) => splits
  }

  /** Runs the query. Its as-of join must have been split, and its rows be those without a split. */
  private def checkSplitAsOf(df: DataFrame): AsOfJoinExec = {
    val rows = df.collect().toSeq
    assert(splitsOf(df).size === 1, s"${reasons(df)} ${df.queryExecution.executedPlan}")
    assertSameRows(rows, rowsWhenOff(df), "the same query without splits")
    joins(df).find(_.split.isDefined).get
  }

  private def checkWholeAsOf(df: DataFrame, reason: SkewReason): Unit = {
    val rows = df.collect().toSeq
    assert(splitsOf(df).isEmpty, df.queryExecution.executedPlan)
    assert(reasons(df) === Seq(reason))
    assertSameRows(rows, rowsWhenOff(df), "the same query without splits")
  }

  test("a hot spine is sliced, in blocks of several map tasks or of one", Slow) {
    val cases = for {
      maps <- Seq(8, 1)
      how <- Seq("left", "inner")
      (direction, exact) <- Seq("backward" -> true, "forward" -> false, "nearest" -> true)
    } yield (maps, how, direction, exact)
    for ((maps, how, direction, exact) <- some(5, cases))
      withClue(s"$how, $direction, $maps map tasks: ") {
        val join = checkSplitAsOf(
          asOf(hotSpine(maps), "v0", how)(
            Versions(versions(1), "at1", direction, exact = exact),
            Versions(versions(2), "at2")))
        val SplitOperator(splits) = join
        assert(splits.partitions.size === 1 && splits.pieces > 2 && splits.residuals === 0)
        assert(splits.partitions.head.slices.forall(_.shares > 1) === (maps == 1))
        assert(join.nodeName === s"AsOfJoin (skew: 1 partition in ${splits.pieces} pieces)")
        assert(join.metrics("numPieces").value === splits.pieces)
        assert(join.metrics("rereadSize").value === splits.rereadBytes)
        assert(join.children.size === 3 && exchangesBelow(join) === 3)
        assert(join.shown.isDefined)
      }
  }

  private def exchangesBelow(join: AsOfJoinExec): Int =
    collectWithSubqueries(join) { case e: ShuffleExchangeLike => e }.size

  /** Half of its versions have one key. */
  private def hotVersions(maps: Int = 12): DataFrame = versions(1, 3000, hot = 2, maps = maps)

  test("tasks before the join find the candidates of hot versions", Slow) {
    val cases = for {
      how <- Seq("left", "inner")
      direction <- Seq("backward", "forward", "nearest")
      exact <- Seq(true, false)
    } yield (how, direction, exact)
    for ((how, direction, exact) <- covering(cases)) withClue(s"$how, $direction, exact $exact: ") {
      val join = checkSplitAsOf(
        asOf(skewed(0, 60), "v0", how)(
          Versions(versions(2), "at2"),
          Versions(hotVersions(), "at1", direction, tolerance = "12", exact = exact)))
      val SplitOperator(splits) = join
      assert(splits.partitions.map(s => (s.input, s.slices)) === Seq((2, Nil)))
      assert(splits.markingTasks > 2)
      assert(join.nodeName === "AsOfJoin (skew: 1 partition in 0 pieces, 1 residual)")
      assert(join.metrics("numMarkingTasks").value === splits.markingTasks)
    }
  }

  test("hot versions that are sorted below the join") {
    val ordered = hotVersions().repartition(col("k")).sortWithinPartitions("k", "at1")
    checkSplitAsOf(
      asOf(skewed(0, 60).withColumn("v0", col("v0").cast("int")), "v0")(Versions(ordered, "at1")))
  }

  test("a hot key of the spine and another one of the versions") {
    val other = hotVersions().withColumn("k", when(col("k") === 3, 4L).otherwise(col("k")))
    val df = asOf(hotSpine(8).where("k = 3 OR v0 < 60"), "v0")(
      Versions(other, "at1"),
      Versions(versions(2), "at2"))
    val SplitOperator(splits) = checkSplitAsOf(df)
    assert(splits.partitions.map(_.input).toSet === Set(0, 1))
    assert(splits.pieces > 1 && splits.residuals === 1)
  }

  test("versions that are other ones when they are computed again are read whole") {
    checkWholeAsOf(
      asOf(skewed(0, 60), "v0")(Versions(hotVersions().withColumn("r", rand(1)), "at1")),
      SkewReason.LittleGain)
  }

  test("the rows are those of a window over all pairs") {
    val spine = hotSpine(1)
    val df = asOf(spine, "v0")(Versions(versions(1), "at1"))
    val pairs = spine
      .join(versions(1), Seq("k"))
      .where("at1 <= v0")
      .withColumn(
        "n",
        row_number().over(
          Window.partitionBy("v0").orderBy(col("at1").desc, col("v1").desc, col("s1").desc)))
      .where("n = 1")
      .select("v0", "v1", "s1", "at1")
    val expected = spine.join(pairs, Seq("v0"), "left").select(df.columns.map(col): _*)
    val rows = df.collect().toSeq
    assert(splitsOf(df).size === 1)
    assertSameRows(rows, expected.collect().toSeq, "a window over all pairs")
  }

  test("the longest task reads at most twice as many rows as the median one") {
    val read = new ConcurrentLinkedQueue[(Int, Long)]
    val listener = new SparkListener {
      override def onTaskEnd(end: SparkListenerTaskEnd): Unit =
        read.add(end.stageId -> end.taskMetrics.shuffleReadMetrics.recordsRead)
    }
    def longest(df: DataFrame): Double = {
      read.clear()
      df.collect()
      TestSessions.drainEvents(spark)
      val all = read.asScala.toSeq
      // Also of the tasks before the join.
      val readers = all.collect { case (_, rows) if rows > 0 => rows }.sorted
      readers.last.toDouble / readers(readers.size / 2)
    }
    spark.sparkContext.addSparkListener(listener)
    try {
      // With so many keys, the other partitions are even.
      val hot = skewed(0, 3000, hot = 2, keys = 400, maps = 12)
      val few = skewed(1, 60)
      for (df <- Seq(asOf(hot, "v0")(Versions(few, "v1")), asOf(few, "v1")(Versions(hot, "v0")))) {
        assert(longest(df) <= 2)
        assert(withSkewOff(longest(again(df))) > 3)
      }
    } finally spark.sparkContext.removeSparkListener(listener)
  }

  test("rows of the spine without a key are sliced, too") {
    val spine = hotSpine().withColumn("k", when(col("v0") % 4 > 0, col("k")))
    val SplitOperator(splits) = checkSplitAsOf(joined(spine.where("k IS NULL OR k <> 3")))
    assert(splits.partitions.size === 1)
  }

  test("a join of another key or time below, and a bucketed table", Slow) {
    // The join below reads its own inputs; the join above reads the slices of the one below.
    val other = Versions(versions(3).withColumn("at3", col("at3").cast("double")), "at3")
    val df = asOf(hotSpine(), "v0")(Versions(versions(1), "at1"), other)
    df.collect()
    assert(joins(df).size === 2 && splitsOf(df).size === 1, df.queryExecution.executedPlan)
    assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query without splits")
    withTable("hot") {
      hotSpine(1).repartition(5, col("k")).write.bucketBy(5, "k").saveAsTable("hot")
      checkWholeAsOf(joined(spark.table("hot")), SkewReason.OneBlock)
    }
  }

  test("operators above that need the partitions of the key keep the join whole", Slow) {
    val df = joined(hotSpine())
    checkWholeAsOf(df.groupBy("k").agg(count("*"), max("v1")), SkewReason.KeysTogether)
    checkWholeAsOf(df.repartition(col("k")), SkewReason.UserRepartition)
    // Between a shuffle above and the join, partitions do not matter.
    checkSplitAsOf(df.groupBy("v1").agg(count("*"), max("v0")))
  }

  test("joins of Spark's on the same key above") {
    val df = joined(hotSpine())
    val other = skewed(5, 60).withColumnRenamed("k", "k5").hint("merge")
    // The as-of join is the skewed input of a join that is split.
    val one = df.join(other, col("k") === col("k5"), "left")
    assert(checkSplit(one).children.size === 2)
    assert(joins(one).size === 1 && splitsOf(one).isEmpty)
    // A join that is not split itself reads the pieces of the as-of join.
    val each = df.join(other, col("k") === col("k5") && col("v0") > col("v5"), "left")
    checkSplitAsOf(each)
    assert(collectWithSubqueries(each.queryExecution.executedPlan) {
      case join: SortMergeJoinExec if join.isSkewJoin => join
    }.size === 1)
  }

  test("even partitions, hot versions of one map task and switched off splits stay whole", Slow) {
    checkWholeAsOf(joined(skewed(0, 400)), SkewReason.NotSkewed)
    checkWholeAsOf(
      asOf(skewed(0, 60), "v0")(Versions(hotVersions(maps = 1), "at1")),
      SkewReason.LittleGain)
    withSQLConf(SkewConf.SKEW_MAX_REREAD_FACTOR.key -> "1.001") {
      checkWholeAsOf(joined(hotSpine()), SkewReason.TooMuchReread)
    }
    withSkewOff {
      val df = joined(hotSpine())
      df.collect()
      assert(splitsOf(df).isEmpty && reasons(df).isEmpty)
    }
  }

  test("directly below a write, each task has a file of the advisory size", Slow) {
    withSQLConf(Advisory -> "30000") {
      val df = joined(hotSpine(16))
      val SplitOperator(splits) = checkSplitAsOf(df)
      withTempPath { path =>
        val plans = plansOf(df.write.parquet(path.getPath))
        val written = plans.flatMap(collect(_) { case SplitOperator(s) => s })
        assert(written.map(_.pieces) === Seq(2) && splits.pieces > 2)
        assertSameRows(
          spark.read.parquet(path.getPath).collect().toSeq,
          rowsWhenOff(df),
          "the query")
      }
    }
  }

  test("tasks of each kind fail once", Slow) {
    for (maps <- Seq(1, 4)) {
      val df = joined(hotSpine(maps)).withColumn("w", watched(col("v0"), col("v0")))
      Watched.reset()
      Watched.onRow = at => if (at.attempt == 0) throw new TaskFails
      val join =
        try checkSplitAsOf(df)
        finally Watched.reset()
      assert(piecesOf(join) > 0)
    }
  }

  test("tasks that find candidates fail once") {
    val read = hotVersions()
      .repartition(col("k"))
      .select(col("k"), watched(col("v1"), lit(0L)).as("v1"), col("at1"))
    Watched.reset()
    Watched.onRow = at => if (at.attempt == 0) throw new TaskFails
    try {
      val SplitOperator(splits) = checkSplitAsOf(asOf(skewed(0, 60), "v0")(Versions(read, "at1")))
      val again = Watched.seen.filter(_.attempt == 1).groupBy(_.stage).values.map(_.size).toSeq
      assert(again.contains(splits.markingTasks))
    } finally Watched.reset()
  }

  private def piecesOf(join: AsOfJoinExec): Int = {
    val SplitOperator(splits) = join
    splits.tasks(join.children.map(SplitReadSpecs.readsOf)).count {
      case _: SplitTask.Piece => true
      case _ => false
    }
  }

  for (maps <- Seq(1, 5)) {
    test(s"shuffle files of the spine are lost while pieces read them, $maps map tasks") {
      withTempPath { path =>
        hotSpine(maps).write.parquet(path.getPath)
        val unordered = readInAnyOrder(spark, path.getPath)
        withSQLConf(
          "spark.sql.files.maxPartitionBytes" -> "1",
          SkewConf.SKEW_MAX_REREAD_FACTOR.key -> "20") {
          val df = joined(unordered).withColumn("w", watched(col("v0"), col("v0")))
          val expected = rowsWhenOff(df)
          Watched.reset()
          // As many tasks run at a time, so one is done when the next one begins.
          Watched.afterTasks = spark.sparkContext.defaultParallelism
          Watched.once = Some(() => TestShuffles.loseLast(TestShuffles.writtenBy(maps).max))
          try {
            assertSameRows(df.collect().toSeq, expected, "the same query without splits")
            assert(splitsOf(df).size === 1)
            assert(Watched.seen.exists(_.stageAttempt > 0))
          } finally Watched.reset()
        }
      }
    }
  }
}
