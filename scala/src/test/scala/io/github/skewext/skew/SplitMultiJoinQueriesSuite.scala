package io.github.skewext.skew

import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.SkewReason

import org.apache.spark.sql.execution.CoalescedPartitionSpec
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{DataFrame, Row}

/** What is above and below a multi-way join with skewed partitions: whether it may be split there. */
class SplitMultiJoinQueriesSuite extends SkewTest {

  test("an operator that needs a key in one task prevents only this split", Slow) {
    val joined = fullJoin("k")(hotFirst(3): _*)
    val above = Seq(
      joined.groupBy("k").agg(count("*"), sum("v0")),
      joined.withColumn("n", count("*").over(Window.partitionBy("k"))),
      joined.select("k").distinct(),
      joined.join(skewed(7, 60), Seq("k"), "full"))
    for (df <- above) {
      checkWhole(df)
      assert(reasons(df).contains(SkewReason.KeysTogether))
    }
    // The other join of the stage is split all the same.
    val both = joined
      .groupBy("k")
      .count()
      .select(col("k").as("v0"))
      .union(fullJoin("k")(hotFirst(2): _*).select("v0"))
    val rows = both.collect().toSeq
    assert(splitJoins(both).size === 1)
    assertSameRows(rows, rowsWhenOff(both), "the same query with skewext off")
    // A group-by of something else is shuffled anyway.
    checkSplit(joined.groupBy(col("v1") % 3).count())
  }

  test("joins that show other key columns do not share a shuffle above") {
    // A regression: Spark took the rows of the first shuffle for those of the second.
    val inputs = Seq(skewed(0, 800, hot = 2), skewed(1, 60), skewed(2, 60))
      .map(_.withColumn("k1", col("k")).withColumn("k2", col("k") * 2).drop("k"))
    withTempView("j") {
      fullJoin("k1", "k2")(inputs: _*).createOrReplaceTempView("j")
      val df = sql("""SELECT 'k1' d, k1 AS x, count(*) n FROM j GROUP BY k1
        |UNION ALL SELECT 'k2', k2 AS x, count(*) FROM j GROUP BY k2""".stripMargin)
      val rows = df.collect().toSeq
      assert(splitJoins(df).size === 2, df.queryExecution.executedPlan)
      assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    }
  }

  test("a repartition by the key above the join keeps its layout", Slow) {
    val joined = fullJoin("k")(hotFirst(2): _*)
    for (df <- Seq(joined.repartition(col("k")), joined.repartition(col("k")).where("v0 > 3"))) {
      checkWhole(df)
      val spread = df
        .select(col("k"), spark_partition_id().as("p"))
        .groupBy("k")
        .agg(countDistinct("p").as("n"))
        .where("n > 1")
      assert(spread.count() === 0)
      assert(reasons(df).nonEmpty)
    }
    // Also where Spark itself forgets that it was asked for.
    val mapped = joined.repartition(col("k")).rdd.mapPartitions { rows =>
      Iterator(rows.map(r => if (r.isNullAt(0)) -1L else r.getLong(0)).toSet)
    }
    val keys = mapped.collect().toSeq.flatten
    assert(keys.size === keys.distinct.size)
  }

  test("a repartition by the key above a write: the files have its layout", Slow) {
    val joined = fullJoin("k")(hotFirst(3): _*)
    def keysOfFiles(df: DataFrame): Seq[Seq[Any]] = {
      var rows: Seq[Row] = Nil
      withTempPath { path =>
        df.write.parquet(path.getPath)
        rows = spark.read.parquet(path.getPath).select("_metadata.file_name", "*").collect().toSeq
      }
      val written = rows.map(row => Row.fromSeq(row.toSeq.tail))
      assertSameRows(written, rowsWhenOff(joined), "the query that was written")
      rows.groupBy(_.get(0)).values.map(_.map(_.get(1))).toSeq
    }
    for (df <- Seq(joined.repartition(col("k")), joined.repartition(7, col("k")))) {
      val distinct = keysOfFiles(df).map(_.distinct)
      assert(distinct.flatten.size === distinct.flatten.distinct.size, "a key is in two files")
      assert(distinct.size <= 7)
    }
    val sorted = keysOfFiles(joined.repartition(7, col("k")).sortWithinPartitions("k"))
    for (keys <- sorted) {
      val numbers = keys.map(k => if (k == null) Long.MinValue else k.asInstanceOf[Long])
      assert(numbers === numbers.sorted)
    }
    // The same without a repartition: a key that is split is in several files.
    val split = keysOfFiles(joined).map(_.distinct)
    assert(split.count(_.contains(3L)) > 1)
  }

  test("a write to buckets keeps its one file a bucket", Slow) {
    def files(write: String => Unit): Int = {
      write("written")
      val rows = spark.table("written")
      assertSameRows(
        rows.collect().toSeq,
        rowsWhenOff(fullJoin("k")(hotFirst(2): _*)),
        "the query that was written")
      rows.inputFiles.length
    }
    def joined = fullJoin("k")(hotFirst(2): _*)
    withSQLConf(SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key -> "false") {
      withTable("written") {
        assert(files(joined.write.bucketBy(shufflePartitions, "k").saveAsTable(_)) === 5)
      }
      // Without buckets every task writes a file, and there are more tasks.
      withTable("written") {
        assert(files(joined.write.saveAsTable(_)) > shufflePartitions)
      }
    }
  }

  private def inSeven =
    Seq(skewed(0, 800, hot = 2), skewed(1, 60)).map(_.repartition(7, col("k")))

  test("a repartition by the key below the join is no obstacle") {
    checkSplit(fullJoin("k")(skewed(0, 800, hot = 2).repartition(col("k")), skewed(1, 60)))
    checkSplit(fullJoin("k")(inSeven: _*).repartition(3))
    checkSplit(fullJoin("k")(inSeven: _*).groupBy("v0").count())
    checkSplit(fullJoin("k")(inSeven: _*).orderBy("k", "v0", "v1").limit(3))
  }

  test("a result keeps the number of partitions of a repartition below the join") {
    for (joined <- Seq(
        fullJoin("k")(inSeven: _*),
        inSeven.head.join(inSeven(1), Seq("k"), "left"))) {
      checkSame(joined)
      assert(joined.rdd.getNumPartitions === 7)
      val keys = joined.rdd.mapPartitions(rows => Iterator(rows.map(_.get(0)).toSet)).collect()
      assert(keys.map(_.size).sum === keys.flatten.toSet.size)
      joined.collect()
      assert(reasons(joined) === Seq(SkewReason.UserPartitions))
    }
  }

  test("a limit: whole partitions come first, and no tasks mark keys") {
    val joined = fullJoin("k")(hotFirst(3): _*)
    val all = joined.collect().toSet
    val limited = joined.limit(5)
    val rows = limited.collect()
    assert(rows.length === 5 && rows.forall(all.contains))
    val Seq(join) = splitJoins(limited)
    assert(join.splits.markingTasks === 0)
    val split = join.splits.partitions.map(_.partition)
    val reads = collect(join.children.head) { case r: AQEShuffleReadExec => r.partitionSpecs }.head
    val isSplit = reads.map {
      case CoalescedPartitionSpec(start, end, _) => end - start == 1 && split.contains(start)
      case _ => true
    }
    assert(isSplit.contains(true) && !isSplit.head && isSplit.sorted === isSplit)
  }

  test("a cached plan, a subquery, a union, a write", Slow) {
    val joined = fullJoin("k")(hotFirst(3): _*)
    for (change <- Seq("true", "false")) {
      withSQLConf("spark.sql.optimizer.canChangeCachedPlanOutputPartitioning" -> change) {
        val cached = again(joined).cache()
        try {
          assertSameRows(
            cached.collect().toSeq,
            rowsWhenOff(joined),
            "the query that is not cached")
          val grouped = cached.groupBy("k").count()
          val plain = joined.groupBy("k").count()
          assertSameRows(
            grouped.collect().toSeq,
            rowsWhenOff(plain),
            "the query that is not cached")
        } finally cached.unpersist(blocking = true)
      }
    }
    joined.createOrReplaceTempView("joined")
    for (condition <- Seq(
        "id < (SELECT max(v1) - 40 FROM joined)",
        "id IN (SELECT k + 2 FROM joined WHERE v0 > 30)",
        "NOT EXISTS (SELECT * FROM joined WHERE v0 = id AND v1 IS NULL)")) {
      val sub = spark.sql(s"SELECT id FROM range(50) WHERE $condition")
      val rows = sub.collect().toSeq
      assert(rows.nonEmpty && rows.size < 50)
      assertSameRows(rows, rowsWhenOff(sub), "the same query with skewext off")
    }
    val union = joined.union(joined)
    assertSameRows(union.collect().toSeq, rowsWhenOff(union), "the same query with skewext off")
    assert(splitJoins(union).nonEmpty)
    withTempPath { path =>
      joined.write.parquet(path.getPath)
      assertSameRows(
        spark.read.parquet(path.getPath).collect().toSeq,
        rowsWhenOff(joined),
        "the query that was written")
    }
  }

  test("stages that are all used again") {
    val (a, b) = (skewed(0, 800, hot = 2), skewed(1, 60))
    val twice = fullJoin("k")(a, b)
      .select(sum("v0"), sum("v1"))
      .union(multiJoin(Seq(a, b), Seq("k"), roles = Seq("required", "optional"))
        .select(sum("v0"), sum("v1")))
    val rows = twice.collect().toSeq
    assert(splitJoins(twice).size === 2)
    assertSameRows(rows, rowsWhenOff(twice), "the same query with skewext off")
  }
}
