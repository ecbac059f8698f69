package io.github.skewext.skew

import io.github.skewext.internal.SkewConf
import io.github.skewext.plan.{InputRole, SkewReason}

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SortExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf

/** Skewed partitions of Spark's own joins that Spark leaves whole. */
class SplitSparkJoinSuite extends SkewTest {

  private val hints = Seq("merge", "shuffle_hash")

  private def left(hot: Int) = skewed(0, if (hot > 0) 800 else 60, hot).withColumnRenamed("k", "l")
  private def right(hot: Int) = skewed(1, if (hot > 0) 800 else 60, hot).withColumnRenamed("k", "r")

  private def join(
      l: DataFrame,
      r: DataFrame,
      how: String,
      hint: String,
      key: String = "r"): DataFrame =
    l.join(r.hint(hint), col("l") === col(key), how)

  private def splitBySpark(df: DataFrame): Boolean =
    collect(df.queryExecution.executedPlan) { case j: ShuffledJoin if j.isSkewJoin => j }.nonEmpty

  for (hint <- hints) {
    test(s"full outer, skew on either side, $hint") {
      for ((l, r) <- Seq((2, 0), (0, 2))) {
        val df = join(left(l), right(r), "full", hint)
        val split = checkSplit(df).splits
        assert(split.pieces > 2 && split.residuals > 0)
        assert(df.schema === withSkewOff(again(df).schema))
      }
    }

    test(s"outer and anti joins with the skew where Spark does not look, $hint") {
      checkSplit(join(left(0), right(2), "left", hint))
      checkSplit(join(left(2), right(0), "right", hint))
      checkSplit(join(left(0), right(2), "left_anti", hint))
    }

    test(s"left semi, skew on either side, $hint") {
      val inRight = checkSplit(join(left(0), right(2), "left_semi", hint)).splits
      assert(inRight.pieces === 0 && inRight.residuals > 0)
      // Keys that occur several times on both sides: one row of the hot one is kept of 350.
      val many = skewed(0, 240, keys = 20).withColumnRenamed("k", "l")
      val often = checkSplit(join(many, right(2), "left_semi", hint))
      assert(often.metrics("numRowsOfInput1").value < 400)
      assert(often.metrics("numOutputRows").value > 80)
      // Many map tasks wrote the right side, and each tells which keys it has.
      val large = skewed(1, 3000, hot = 3, maps = 12).withColumnRenamed("k", "r")
      val few = skewed(0, 40, keys = 9).withColumnRenamed("k", "l")
      for (how <- Seq("left_semi", "left_anti")) {
        val marked = checkSplit(join(few, large, how, hint))
        assert(marked.splits.markingTasks > 1)
        // Whole partitions alone are read by the join.
        assert(marked.metrics("numRowsOfInput1").value < 750)
      }
      // One map task wrote the left side, so Spark leaves it whole.
      val oneMap = skewed(0, 800, 2, maps = 1).withColumnRenamed("k", "l")
      val inLeft = checkSplit(join(oneMap, right(0), "left_semi", hint)).splits
      assert(inLeft.pieces > 2 && inLeft.residuals === 0)
    }
  }

  test("left semi in a chain of joins on one key") {
    val r = skewed(1, 120).withColumnRenamed("k", "r")
    val c = skewed(2, 120).withColumnRenamed("k", "c")
    val hot = skewed(2, 800, 2).withColumnRenamed("k", "c")
    val chains = Seq(
      join(join(left(2), r, "inner", "merge"), c, "left_semi", "merge", "c"),
      join(join(left(2), r, "left_semi", "merge"), c, "left", "shuffle_hash", "c"),
      join(join(left(2), r, "left_semi", "shuffle_hash"), c, "left_anti", "merge", "c"),
      join(join(left(0), r, "left", "merge"), hot, "left_semi", "shuffle_hash", "c"),
      // The same table for both, with the same columns.
      join(join(left(2), c, "left_semi", "merge", "c"), c, "inner", "shuffle_hash", "c"))
    for (df <- chains) {
      val split = checkSplit(df)
      assert(split.children.size === 3)
      assert(split.roles.count(_ == InputRole.Present) === 1)
      assert(df.schema === withSkewOff(again(df).schema))
    }
  }

  for (hint <- hints) {
    test(s"where Spark splits, its result stands, $hint") {
      for ((l, r, how) <- Seq(
          (2, 0, "inner"),
          (0, 2, "inner"),
          (2, 0, "left"),
          (0, 2, "right"),
          (2, 0, "left_anti"),
          (2, 0, "left_semi"))) withClue(s"$l $r $how: ") {
        val df = join(left(l), right(r), how, hint)
        checkWhole(df)
        assert(splitBySpark(df))
      }
    }
  }

  test("one map task wrote what is skewed: tasks share its block by what is in the rows") {
    def slices(df: DataFrame) = checkSplit(df).splits.partitions.flatMap(_.slices)
    val oneMap = skewed(0, 800, 2, maps = 1).withColumnRenamed("k", "l")
    for (how <- Seq("inner", "left", "full")) {
      val df = join(oneMap, right(0), how, "merge")
      assert(slices(df).count(_.shares > 1) > 2)
      assert(!splitBySpark(df))
      // Each of them reads every row of the block: no more than maxRereadFactor allows.
      val read = collect(df.queryExecution.executedPlan) { case e: ShuffleExchangeLike =>
        e.metrics("recordsRead").value
      }
      assert(read.max > 2 * 400 && read.max <= 4 * 800)
    }
    withSQLConf(SkewConf.SHUFFLE_BULK_ROWS.key -> "false") {
      assert(slices(join(oneMap, right(0), "full", "merge")).exists(_.shares > 1))
    }
    // Something between the shuffle and the join: it is not just read.
    val changed = oneMap.repartition(5, col("l")).where("v0 > 2")
    assert(slices(join(changed, right(0), "full", "merge")).exists(_.shares > 1))
  }

  test("keys of what one map task wrote: each marking task would read all of it, so none does") {
    val oneMap = skewed(0, 6000, 3, maps = 1).withColumnRenamed("k", "l")
    for (how <- Seq("full", "right")) {
      val split = checkSplit(join(oneMap, right(0), how, "merge")).splits
      assert(split.residuals > 0 && split.markingTasks === 0)
    }
  }

  test("shares of a large block, each of keys that the others have not") {
    val oneMap = skewed(0, 20000, 3, keys = 20000, maps = 1).withColumnRenamed("k", "l")
    val other = skewed(1, 5000, keys = 20000).withColumnRenamed("k", "r")
    withSQLConf(Advisory -> "70000") {
      for (how <- Seq("full", "right")) {
        val split = checkSplit(join(oneMap, other, how, "merge")).splits
        assert(split.partitions.exists(_.slices.count(_.shares > 1) > 2))
      }
    }
  }

  test("a projection of columns above is left to the join") {
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

  test("null keys of outer joins") {
    val nulls = left(2).withColumn("l", when(col("l") =!= 3, col("l")))
    for (how <- Seq("full", "left"); hint <- hints) {
      val df = join(nulls.repartition(1), right(0), how, hint)
      assert(checkSplit(df).metrics("numPieceRows").value > 300)
    }
  }

  test("keys that are expressions, floating-point numbers, several, null-safe") {
    def doubles(df: DataFrame, k: String) =
      df.withColumn(
        k,
        when(col(k) === 3, Double.NaN).otherwise(when(col(k) % 2 === 0, -0.0).otherwise(0.0)))
    val few = right(0).where("v1 < 20")
    for (hint <- hints) {
      checkSplit(
        doubles(left(2), "l").join(doubles(few, "r").hint(hint), col("l") === col("r"), "full"))
      checkSplit(left(2).join(few.hint(hint), col("l") + 1 === col("r") + 1, "full"))
      checkSplit(
        left(2)
          .join(few.hint(hint), col("l") === col("r") && col("v0") % 2 === col("v1") % 2, "full"))
      checkSplit(left(2).join(few.hint(hint), col("l") <=> col("r"), "full"))
    }
  }

  test("a condition besides the keys: a filter of an inner join, a veto for others") {
    val condition = col("l") === col("r") && col("v0") > col("v1")
    val oneMap = skewed(0, 800, 2, maps = 1).withColumnRenamed("k", "l")
    checkSplit(oneMap.join(right(0), condition, "inner"))
    for (how <- Seq("full", "left_anti")) {
      val df = left(2).join(right(2).limit(100), condition, how)
      checkWhole(df)
      if (how == "full") assert(reasons(df).contains(SkewReason.OuterCondition))
    }
    for (how <- Seq("left_semi", "left_anti")) {
      val df = left(0).join(right(2), condition, how)
      checkWhole(df)
      assert(reasons(df) === Seq(SkewReason.OuterCondition))
    }
  }

  test("conditions on one side besides the keys") {
    def keys = col("l") === col("r")
    val ofLeft = keys && col("v0") % 3 =!= 0
    val ofRight = keys && col("s1") =!= "s1"
    val cases = Seq("merge" -> ofLeft, "shuffle_hash" -> ofRight, "merge" -> (ofLeft && ofRight))
    for ((hint, condition) <- cases) {
      withClue(s"$hint, $condition: ") {
        for ((l, r) <- Seq((2, 0), (0, 2))) {
          checkSplit(left(l).join(right(r).hint(hint), condition, "full"))
        }
        checkSplit(left(2).join(right(0).hint(hint), condition, "right"))
        for (how <- Seq("left", "left_semi", "left_anti")) {
          checkSplit(left(0).join(right(2).hint(hint), condition, how))
        }
      }
    }
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "true") {
      // No row of the key with v1 = 0 is in the left table: Spark divides by none.
      val divides = keys && lit(100) / col("v1") > 1
      val whole = left(2).join(right(0).hint("merge"), divides, "full")
      checkWhole(whole)
      assert(reasons(whole) === Seq(SkewReason.ConditionMayFail))
      val compares = keys && (col("v1") > 7 || col("s1").startsWith("a")) && col("v0").isNotNull
      checkSplit(left(2).join(right(0).hint("merge"), compares, "full"))
    }
    // A row that matches nothing in one join may do so in the next on the key: they stay two.
    val chain = left(2)
      .join(right(0).hint("merge"), ofLeft, "left")
      .join(skewed(2, 60).withColumnRenamed("k", "c").hint("merge"), col("l") === col("c"), "left")
    assert(checkSplit(chain).children.size === 2)
  }

  test("whether a key exists, as a column, is nothing that is split") {
    left(0).createOrReplaceTempView("l")
    right(2).createOrReplaceTempView("r")
    val df = spark.sql("SELECT * FROM l WHERE v0 < 9 OR EXISTS (SELECT 1 FROM r WHERE r = l)")
    checkWhole(df)
    assert(reasons(df) === Seq(SkewReason.JoinType))
  }

  test("left semi: collisions of hashes, and no memory for hash tables") {
    for (conf <- Seq(
        SkewConf.MULTI_JOIN_HASH_BITS.key -> "1",
        SkewConf.MULTI_JOIN_GROUPING.key -> "sort",
        SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key -> "7")) {
      withSQLConf(conf) {
        val oneMap = skewed(0, 800, 2, maps = 1).withColumnRenamed("k", "l")
        val r = skewed(1, 120).withColumnRenamed("k", "r")
        checkSplit(join(oneMap, r, "left_semi", "merge"))
      }
    }
  }

  test("joins on one key in one stage become one") {
    val c = skewed(2, 60).withColumnRenamed("k", "c")
    val d = skewed(3, 60).withColumnRenamed("k", "d")
    for (hint <- hints) {
      val inner = join(left(2), right(0), "inner", hint)
      val chains = Seq(
        inner.join(c.hint(hint), col("l") === col("c"), "inner"),
        inner.join(c.hint(hint), col("r") === col("c"), "left"),
        inner.join(c.hint(hint), col("l") === col("c"), "left_anti"),
        inner
          .select(col("r").as("x"), (col("v0") * 2).as("y"))
          .join(c.hint(hint), col("x") === col("c") && col("y") > col("v2"), "inner")
          .select("y", "x", "s2"),
        join(left(2), right(0), "left", hint)
          .join(c.hint(hint), col("l") === col("c"), "inner")
          .join(d.hint(hint), col("l") === col("d"), "left"))
      for (df <- chains) {
        val split = checkSplit(df)
        assert(split.children.size === exchanges(df).size)
        assert(!splitBySpark(df))
        assert(df.schema === withSkewOff(again(df).schema))
      }
    }
  }

  test("conditions of a lower join, and filters above it, stay where they are") {
    val c = skewed(2, 60).withColumnRenamed("k", "c").hint("merge")
    val inner = join(left(2), right(0), "inner", "merge")
    for (lower <- Seq(
        left(2).join(right(0).hint("merge"), col("l") === col("r") && col("v0") > col("v1") + 9),
        inner.where("v0 + v1 > 30"),
        inner.where("v0 + v1 > 30").select(col("l"), (col("v0") + col("v1")).as("v")))) {
      val df = lower.join(c, col("l") === col("c"), "left")
      val split = checkSplit(df)
      assert(split.children.size === 2)
      // All rows that the operator gets are those that Spark's lower join gives.
      val Seq(below) = collect(split.children.head) { case j: ShuffledJoin => j }
      assert(below.metrics("numOutputRows").value >= lower.count())
    }
  }

  test("what relies on the key or its order above") {
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
    val ordered = sorted.select("l").rdd.mapPartitions { rows =>
      val keys = rows.map(r => if (r.isNullAt(0)) Long.MinValue else r.getLong(0)).toSeq
      Iterator(keys == keys.sorted)
    }
    assert(ordered.collect().forall(identity))
    assert(collect(sorted.queryExecution.executedPlan) { case s: SortExec => s }.nonEmpty)
  }

  test("a repartition above that Spark does not drop is no obstacle") {
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

  test("windows, cached plans, subqueries, unions and writes above") {
    for (hint <- hints) {
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

  test("the other input is aggregated between shuffle and join") {
    val grouped = right(0).groupBy("r").agg(sum("v1").as("n"), max("s1").as("m"))
    for (how <- Seq("full", "inner", "left"); hint <- hints) {
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
