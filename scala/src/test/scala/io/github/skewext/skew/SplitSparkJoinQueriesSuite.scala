package io.github.skewext.skew

import io.github.skewext.skew.plan.SkewReason

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SortExec
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._

/** What is above Spark's joins that are split, and between them and their shuffles. */
class SplitSparkJoinQueriesSuite extends SplitSparkJoinTest {

  test("a projection of columns above is left to the join", Slow) {
    def shown(df: DataFrame) = {
      val split = checkSplit(df)
      assert(split.shown.isDefined && split.output === df.queryExecution.executedPlan.output)
      split
    }
    val (l, r) = (skewed(0, 800, 2), skewed(1, 60))
    shown(l.join(r, Seq("k"), "full"))
    shown(l.join(r, Seq("k"), "full").select(col("s1"), col("k").as("key"), col("s1").as("again")))
    shown(r.join(l, Seq("k"), "left").select("v0", "s1"))
    shown(fullJoin("k")(l, r).select(col("s1").as("s"), col("v0"), col("k")))
    // It computes something.
    for (df <- Seq(
        l.join(r, Seq("k"), "full").select(col("k") + 1),
        l.join(r, Seq("k"), "full").select(coalesce(col("s0"), lit("none"))))) {
      assert(checkSplit(df).shown.isEmpty)
    }
  }

  test("operators above that rely on the key or its order", Slow) {
    val l = left(0)
    val df = join(l, right(2), "left", "merge")
    for (above <- Seq(
        df.groupBy("l").count(),
        df.repartition(col("l")),
        df.join(
          skewed(2, 60).hint("merge"),
          col("v1") === col("v2") && col("l") === col("k"),
          "full"))) {
      val rows = above.collect().toSeq
      assertSameRows(rows, rowsWhenOff(above), "the same query with skewext off")
    }
    assert(splitJoins(df.groupBy("l").count()).isEmpty)
    // Spark drops this sort, as its join gives the rows in the order of the keys.
    val sorted = df.sortWithinPartitions("l")
    checkSplit(sorted)
    assert(isSorted(sorted))
    assert(collect(sorted.queryExecution.executedPlan) { case s: SortExec => s }.nonEmpty)
  }

  private def isSorted(df: DataFrame): Boolean = df
    .select("l")
    .rdd
    .mapPartitions { rows =>
      val keys = rows.map(r => if (r.isNullAt(0)) Long.MinValue else r.getLong(0)).toSeq
      Iterator(keys == keys.sorted)
    }
    .collect()
    .forall(identity)

  test("the order of rows is kept below a shuffled hash join, which passes it on") {
    val joined = join(left(0), right(2), "left", "merge").join(
      skewed(2, 60).hint("shuffle_hash"),
      col("l") === col("k") && col("v0") > col("v2"),
      "left")
    val sorted = joined.sortWithinPartitions("l")
    checkSplit(sorted)
    assert(isSorted(sorted))
  }

  test("a plan joined with itself, whose columns projections hide", Slow) {
    withTempView("of_plan") {
      // Spark 3.5 gives no new id to `w`.
      skewed(1, 80).selectExpr("k", "v1 * 2 AS w").createOrReplaceTempView("of_plan")
      skewed(0, 800, hot = 2).createOrReplaceTempView("hot")
      skewed(2, 60).createOrReplaceTempView("other")
      val df = spark.sql("""SELECT l.k, l.w, r.w2, v0, v2
        |FROM (SELECT /*+ MERGE(hot) */ base.k, base.w, v0 FROM of_plan base JOIN hot ON base.k = hot.k) l
        |JOIN (SELECT /*+ MERGE(other) */ base.k AS k2, base.w AS w2, v2
        |  FROM of_plan base JOIN other ON base.k = other.k) r ON l.k = r.k2""".stripMargin)
      val rows = df.collect().toSeq
      assert(rows.exists(r => r.getAs[Any]("w") != r.getAs[Any]("w2")))
      assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
      val base = spark.table("of_plan")
      val l = base.join(spark.table("hot").hint("merge"), "k")
      val r = base
        .join(
          spark.table("other").withColumnRenamed("k", "kb").hint("merge"),
          base("k") === col("kb"))
        .select(base("k").as("k2"), base("w").as("w2"), col("v2"))
      for (on <- Seq(col("k") === col("k2"), col("k") === col("k2") && col("w") =!= col("w2"))) {
        val frame = l.join(r.hint("merge"), on).select("k", "w", "w2", "v0", "v2")
        assertSameRows(frame.collect().toSeq, rowsWhenOff(frame), "the same query with skewext off")
      }
      assert(splitJoins(df).size === 1, s"${reasons(df)} ${df.queryExecution.executedPlan}")
    }
  }

  test("a repartition above that Spark does not drop is no obstacle", Slow) {
    val full = join(left(2), right(0), "full", "shuffle_hash")
    for (df <- Seq(
        full.repartition(col("l")),
        full.where("coalesce(v0, v1) > 1").select("l", "v0", "v1").repartition(7, col("l")))) {
      checkSplit(df)
      assert(exchanges(df).size === 3)
    }
    // Here it is dropped.
    val kept = join(left(0), right(2), "left", "shuffle_hash").repartition(col("l"))
    checkWhole(kept)
    assert(exchanges(kept).size === 2)
    assert(reasons(kept).contains(SkewReason.UserRepartition))
  }

  test("windows, cached plans, subqueries, unions and writes above", Slow) {
    for (hint <- some(1, hints)) {
      val df = join(left(2), right(0), "full", hint)
      checkSplit(df)
      val window = df.withColumn("n", count("*").over(Window.partitionBy("l").orderBy("v0", "v1")))
      assertSameRows(window.collect().toSeq, rowsWhenOff(window), "the query with skewext off")
      val cached = again(df).cache()
      try {
        val grouped = cached.groupBy("l").agg(count("*"), sum("v1"))
        assertSameRows(
          grouped.collect().toSeq,
          rowsWhenOff(df.groupBy("l").agg(count("*"), sum("v1"))),
          "the query that is not cached")
      } finally cached.unpersist(blocking = true)
      df.createOrReplaceTempView("joined")
      val sub = spark.sql("SELECT id FROM range(50) WHERE id IN (SELECT l FROM joined)")
      val found = sub.collect().toSeq
      assert(found.nonEmpty && found.size < 50)
      assertSameRows(found, rowsWhenOff(sub), "the query with skewext off")
      val union = df.union(join(left(0), right(2), "full", hint)).select("l", "v0", "r", "v1")
      assertSameRows(union.collect().toSeq, rowsWhenOff(union), "the query with skewext off")
      assert(splitJoins(union).size === 2)
      withTempPath { path =>
        df.write.parquet(path.getPath)
        assertSameRows(
          spark.read.parquet(path.getPath).collect().toSeq,
          rowsWhenOff(df),
          "the query that was written")
      }
      withTable("written") {
        df.write.bucketBy(shufflePartitions, "l").sortBy("l").saveAsTable("written")
        assertSameRows(
          spark.table("written").collect().toSeq,
          rowsWhenOff(df),
          "the query that was written")
        val grouped = spark.table("written").groupBy("l").count()
        assertSameRows(
          grouped.collect().toSeq,
          rowsWhenOff(df.groupBy("l").count()),
          "the query that was written")
        assert(exchanges(grouped).isEmpty)
      }
      withSQLConf("spark.sql.adaptive.enabled" -> "false")(checkWhole(again(df)))
    }
  }

  test("the other input is aggregated between shuffle and join", Slow) {
    val grouped = right(0).groupBy("r").agg(sum("v1").as("n"), max("s1").as("m"))
    val cases = for (how <- Seq("full", "inner", "left"); hint <- hints) yield (how, hint)
    for ((how, hint) <- covering(cases)) {
      val df = join(left(2), grouped, how, hint)
      checkSplit(df)
      assert(exchanges(df).size === 2)
    }
    // Sums of floating-point numbers depend on the order, and each task would have its own.
    val inexact = right(0).groupBy("r").agg(sum(col("v1") / 7).as("n"))
    val df = join(left(2), inexact, "full", "shuffle_hash").select("l", "v0", "r")
    checkSplit(df)
    val shown = join(left(2), inexact, "full", "shuffle_hash").where("n > 1")
    shown.collect()
    assert(splitJoins(shown).isEmpty)
    assert(reasons(shown).contains(SkewReason.InputNotDeterministic))
    // Of the aggregated input no part will do.
    val hot = left(2)
      .groupBy("l", "v0")
      .agg(max("s0").as("m"))
      .repartition(col("l"))
      .groupBy("l")
      .agg(collect_set("m").as("m"))
    val whole = join(hot, right(0), "full", "merge")
    whole.collect()
    assert(splitJoins(whole).isEmpty)
  }

  test("evaluates projections between joins before the product of all inputs") {
    val calls = spark.sparkContext.longAccumulator
    val counted = udf { (v: Long) =>
      calls.add(1)
      v
    }
    val dimension = skewed(1, 60)
      .join(skewed(2, 60).hint("merge"), "k")
      .select(col("k"), counted(col("v1")).as("c"))
    val df = skewed(0, 800, hot = 2).join(dimension.hint("merge"), "k").select("v0", "c")
    checkSplit(df)
    calls.reset()
    assert(df.collect().length > 4 * calls.value, calls)
  }

  test("expressions of a chain of joins do not grow with each join") {
    val scored = skewed(0, 800, hot = 2).select(col("k"), lit(0L).as("score"))
    val df = (1 to 8).foldLeft(scored) { (rows, i) =>
      val (table, score) = (skewed(1, 20).select(col("k"), col("v1").as(s"t$i")), col("score"))
      rows
        .join(table.hint("merge"), Seq("k"), "left")
        .withColumn("score", when(col(s"t$i").isNull, score).otherwise(score + col(s"t$i")))
        .drop(s"t$i")
    }
    checkSplit(df)
    val sizes = collect(df.queryExecution.executedPlan) { case node =>
      node.expressions.map(_.collect { case e => e }.size)
    }
    assert(sizes.flatten.max < 100)
  }

  test("rows are changed between shuffle and join") {
    val changed = left(2).repartition(col("l")).where("v0 % 7 < 5").withColumn("v0", col("v0") + 1)
    checkSplit(join(changed, right(0), "full", "shuffle_hash"))
    val random = left(2).repartition(col("l")).withColumn("v0", rand(3))
    val df = join(random, right(0), "full", "shuffle_hash")
    df.collect()
    assert(splitJoins(df).isEmpty)
    assert(reasons(df).contains(SkewReason.InputNotDeterministic))
  }
}
