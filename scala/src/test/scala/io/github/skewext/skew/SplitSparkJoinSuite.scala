package io.github.skewext.skew

import io.github.skewext.join.InputRole
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.SkewReason

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.functions._

/** Skewed partitions of Spark's own joins that Spark leaves whole. */
class SplitSparkJoinSuite extends SplitSparkJoinTest {

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

    test(s"left semi, skew on either side, $hint", Slow) {
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

  test("left semi in a chain of joins on one key", Slow) {
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

  private val ofSpark = for {
    hint <- hints
    of <- Seq(
      (2, 0, "inner"),
      (0, 2, "inner"),
      (2, 0, "left"),
      (0, 2, "right"),
      (2, 0, "left_anti"),
      (2, 0, "left_semi"))
  } yield (hint, of)

  for ((hint, cases) <- covering(ofSpark).groupBy(_._1)) {
    test(s"where Spark splits, its result stands, $hint", Slow) {
      for ((_, (l, r, how)) <- cases) withClue(s"$l $r $how: ") {
        val df = join(left(l), right(r), how, hint)
        checkWhole(df)
        assert(splitBySpark(df))
      }
    }
  }

  test("tasks divide a skewed block of one map task by the content of rows", Slow) {
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
    withSQLConf(SkewConf.SHUFFLE_ENABLED.key -> "false") {
      assert(slices(join(oneMap, right(0), "full", "merge")).exists(_.shares > 1))
    }
    // Something between the shuffle and the join: it is not just read.
    val changed = oneMap.repartition(col("l")).where("v0 > 2")
    assert(slices(join(changed, right(0), "full", "merge")).exists(_.shares > 1))
  }

  test("keys of what one map task wrote: each marking task would read all of it, so none does") {
    val oneMap = skewed(0, 6000, 3, maps = 1).withColumnRenamed("k", "l")
    for (how <- Seq("full", "right")) {
      val split = checkSplit(join(oneMap, right(0), how, "merge")).splits
      assert(split.residuals > 0 && split.markingTasks === 0)
    }
  }

  test("shares of a large block, each of keys that the others have not", Slow) {
    val oneMap = skewed(0, 20000, 3, keys = 20000, maps = 1).withColumnRenamed("k", "l")
    val other = skewed(1, 5000, keys = 20000).withColumnRenamed("k", "r")
    withSQLConf(Advisory -> "70000") {
      for (how <- Seq("full", "right")) {
        val split = checkSplit(join(oneMap, other, how, "merge")).splits
        assert(split.partitions.exists(_.slices.count(_.shares > 1) > 2))
      }
    }
  }

  test("null keys of outer joins") {
    val nulls = left(2).withColumn("l", when(col("l") =!= 3, col("l")))
    for (how <- Seq("full", "left"); hint <- hints) {
      val df = join(nulls.repartition(1), right(0), how, hint)
      assert(checkSplit(df).metrics("numPieceRows").value > 300)
    }
  }

  test("keys that are expressions, floating-point numbers, several, null-safe", Slow) {
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
}
