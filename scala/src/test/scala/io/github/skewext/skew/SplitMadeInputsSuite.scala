package io.github.skewext.skew

import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.skew.run.{SplitJoinExec, SplitReadSpecs}

import org.scalacheck.Gen
import org.scalacheck.rng.Seed

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, ShuffledJoin}
import org.apache.spark.sql.execution.window.{WindowExec, WindowGroupLimitExec}
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._

/** Inputs that are made of all rows of a key, or of several shuffles, between these and the join. */
class SplitMadeInputsSuite extends SkewTest {

  private def table(i: Int, hot: Int, key: String, maps: Int = 4): DataFrame =
    skewed(i, if (hot > 0) 800 else 60, hot, maps = maps).withColumnRenamed("k", key)

  private def left(hot: Int) = table(0, hot, "l")
  private def right(hot: Int) = table(1, hot, "r")
  private def third(hot: Int) = table(2, hot, "c")

  private def join(l: DataFrame, r: DataFrame, how: String, keys: (String, String)): DataFrame =
    l.join(r.hint("shuffle_hash"), col(keys._1) === col(keys._2), how)

  private def inputsOf(join: SplitJoinExec): Seq[Int] =
    join.children.map(child => collect(child) { case read: AQEShuffleReadExec => read }.size)

  private val byKey = Window.partitionBy("r")

  test("a window over the other input", Slow) {
    val columns = Seq(
      rank().over(byKey.orderBy(col("v1") % 3)),
      dense_rank().over(byKey.orderBy(col("v1") % 3)),
      cume_dist().over(byKey.orderBy(col("v1") % 3)),
      sum("v1").over(byKey),
      count("*").over(byKey.orderBy(col("v1") % 3)),
      max("s1").over(byKey.orderBy("v1").rangeBetween(-40, 40)),
      min("v1").over(
        byKey.orderBy("v1").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)))
    val windowed = columns.zipWithIndex.foldLeft(right(0)) { case (df, (c, j)) =>
      df.withColumn(s"w$j", c)
    }
    for (how <- Seq("full", "right")) {
      val df = join(table(0, 2, "l", maps = 1), windowed, how, "l" -> "r")
      val split = checkSplit(df)
      assert(split.exists(_.isInstanceOf[WindowExec]))
      assert(exchanges(df).size === 2)
    }
  }

  test("a window that may be another one the next time") {
    // Rows of equal sort keys change their places.
    for (c <- Seq(
        row_number().over(byKey.orderBy("v1")),
        lag("v1", 1).over(byKey.orderBy("v1")),
        first("v1").over(byKey.orderBy("v1")),
        sum("v1").over(byKey.orderBy("v1").rowsBetween(-2, 0)),
        sum(col("v1") / 7).over(byKey))) withClue(s"$c: ") {
      val df = join(left(2), right(0).withColumn("w", c), "full", "l" -> "r")
      df.collect()
      assert(splitJoins(df).isEmpty)
      assert(reasons(df).contains(SkewReason.InputNotDeterministic))
    }
  }

  test("the first rows of each key", Slow) {
    def top(f: org.apache.spark.sql.Column) =
      right(0).withColumn("n", f.over(byKey.orderBy("v1"))).where("n <= 2")
    val ranked = join(left(2), top(rank()), "full", "l" -> "r")
    assert(checkSplit(ranked).exists(_.isInstanceOf[WindowGroupLimitExec]))
    val numbered = join(left(2), top(row_number()), "full", "l" -> "r")
    checkWhole(numbered)
    assert(reasons(numbered) === Seq(SkewReason.InputNotDeterministic))
    // Nor is a block divided by what such rows are, when a map task may choose others.
    val oneMap = table(1, 2, "r", maps = 1)
      .withColumn("n", row_number().over(Window.partitionBy("v1").orderBy("s1")))
      .where("n <= 2")
      .coalesce(1)
    for ((how, reason) <- Seq("left" -> SkewReason.OneBlock, "full" -> SkewReason.NotStable)) {
      val cut = join(oneMap, left(0), how, "r" -> "l")
      checkWhole(cut)
      assert(reasons(cut) === Seq(reason))
    }
  }

  test("the other input is a join", Slow) {
    for ((inner, how) <- Seq(
        "inner" -> "full",
        "left" -> "full",
        "left_semi" -> "right",
        "left_anti" -> "full")) {
      val nested = join(right(0), third(0), inner, "r" -> "c")
      val df = join(left(2), nested, how, "l" -> "r")
      val split = checkSplit(df)
      // What rows of the right side are required for joins of it are a join of three inputs.
      if (how == "full") assert(inputsOf(split) === Seq(1, 2))
      else assert(inputsOf(split).sum === 3)
      assert(df.schema === withSkewOff(again(df).schema))
    }
    val ours = fullJoin("k")(skewed(1, 60), skewed(2, 60), skewed(3, 20))
    val df = join(left(2), ours, "full", "l" -> "k")
    assert(inputsOf(checkSplit(df)) === Seq(1, 3))
    assert(exchanges(df).size === 4)
    val twice = fullJoin("k")(skewed(0, 800, 2), ours, skewed(4, 60))
    assert(inputsOf(checkSplit(twice)) === Seq(1, 3, 1))
  }

  test("the keys of the skewed input are marked before the join, the other input is a join", Slow) {
    val hot = skewed(0, 3000, hot = 3, maps = 12).withColumnRenamed("k", "l")
    val few =
      skewed(1, 20).withColumnRenamed("k", "r").withColumn("n", rank().over(byKey.orderBy("v1")))
    val nested = join(few, third(0).where("v2 < 20"), "left", "r" -> "c")
    for (how <- Seq("full", "right")) {
      val split = checkSplit(join(hot, nested, how, "l" -> "r"))
      assert(inputsOf(split) === (if (how == "full") Seq(1, 2) else Seq(1, 1, 1)))
      assert(split.splits.markingTasks > 1)
    }
  }

  test("force: one more shuffle above joins that are inputs of one", Slow) {
    val condition = col("l") === col("c") && col("v0") > col("v2")
    val whole = join(left(2), join(right(0), third(0), "left", "r" -> "c"), "right", "l" -> "r")
    val through = join(
      left(2).join(third(0).hint("shuffle_hash"), condition, "left"),
      right(0),
      "inner",
      "l" -> "r")
    for ((joined, key) <- Seq(whole -> "r", through -> "l")) {
      val grouped = joined.groupBy(key).agg(count("*"), sum("v1"))
      checkWhole(grouped)
      assert(reasons(grouped).contains(SkewReason.KeysTogether))
      withSQLConf(Force -> "true", OurCosts) {
        val df = again(grouped)
        if (joined eq whole) {
          checkSplit(df)
          assert(exchanges(df).size === 4)
        } else {
          // Spark splits it itself when that is forced, and its result stands.
          checkWhole(df)
          assert(collect(df.queryExecution.executedPlan) {
            case j: ShuffledJoin if j.isSkewJoin => j
          }.nonEmpty)
        }
      }
    }
  }

  test("force: not where Spark reads an input's shuffle by map tasks") {
    val isSmall = udf((v: Long) => v < 20)
    val made = left(2)
      .join(third(0).where(isSmall(col("v2"))), col("l") === col("c"))
      .join(right(0).hint("merge"), col("l") === col("r"), "left")
      .groupBy("l")
      .agg(max("s0"), max("v1"))
    withSQLConf(
      Force -> "true",
      "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "2000",
      OurCosts) {
      val df = again(made)
      checkWhole(df)
      assert(collect(df.queryExecution.executedPlan) { case j: BroadcastHashJoinExec =>
        j
      }.size === 1)
      assert(reasons(df).contains(SkewReason.KeysTogether))
      withSQLConf("spark.sql.adaptive.localShuffleReader.enabled" -> "false") {
        checkSplit(again(made))
      }
    }
  }

  test("a join, aggregated and ranked") {
    val made = join(right(0), third(0), "inner", "r" -> "c")
      .groupBy("r", "v2")
      .agg(sum("v1").as("v1"))
      .withColumn("n", rank().over(byKey.orderBy("v1")))
    val df = join(left(2), made, "full", "l" -> "r")
    assert(inputsOf(checkSplit(df)) === Seq(1, 2))
    assert(exchanges(df).size === 3)
  }

  test("the shuffles of an input must be read alike") {
    val nested = join(right(0), third(0), "inner", "r" -> "c")
    val input = checkSplit(join(left(2), nested, "full", "l" -> "r")).children(1)
    assert(SplitReadSpecs.readsOf(input).nonEmpty)
    var first = true
    val broken = input.transformUp {
      case AQEShuffleReadExec(stage, specs) if first =>
        first = false
        AQEShuffleReadExec(stage, specs.tail :+ specs.head)
    }
    intercept[IllegalStateException](SplitReadSpecs.readsOf(broken))
  }

  test("joins on one key on both sides of a join become one", Slow) {
    val (c, d) = (third(2), table(3, 0, "d"))
    val l = join(left(0), right(0), "left", "l" -> "r")
    val twoKeys = col("c") === col("d") && col("v2") % 2 === col("v3") % 2
    for ((r, key) <- Seq(
        (join(d, c, "inner", "d" -> "c"), "c"),
        (join(c, d, "left", "c" -> "d").where("v2 > 20"), "c"),
        (join(c, d, "left_semi", "c" -> "d"), "c"))) {
      val df = join(l, r, "inner", "l" -> key)
      val split = checkSplit(df)
      assert(split.children.size === 4)
      assert(split.splits.residuals === 0)
      assert(exchanges(df).size === 4)
    }
    // What is optional stays one input.
    val optional = checkSplit(join(l, join(d, c, "inner", "d" -> "c"), "right", "l" -> "c"))
    assert(inputsOf(optional) === Seq(2, 1, 1))
    // Keys in another order.
    val e = c.join(d.hint("shuffle_hash"), twoKeys)
    val df = right(0).join(
      e.hint("shuffle_hash"),
      col("v1") % 2 === col("v2") % 2 && col("r") === col("c"))
    assert(inputsOf(checkSplit(df)) === Seq(1, 1, 1))
  }

  test("slices go through joins that a part of the rows will do for", Slow) {
    val condition = col("l") === col("c") && col("v0") > col("v2")
    def nested(how: String) = left(2).join(third(0).hint("shuffle_hash"), condition, how)
    for ((inner, how) <- Seq("left" -> "inner", "left_semi" -> "left", "left_anti" -> "inner"))
      withClue(s"$inner $how: ") {
        val df = join(nested(inner), right(0), how, "l" -> "r")
        val split = checkSplit(df)
        assert(inputsOf(split) === Seq(2, 1))
        assert(split.splits.pieces > 2 && split.splits.residuals === 0)
        assert(exchanges(df).size === 3)
      }
    // Also through a broadcast join between two others.
    val small = table(3, 0, "b").limit(30).select("b", "v3")
    val star = join(left(2), third(0), "inner", "l" -> "c")
      .join(broadcast(small), col("v0") % 40 === col("b"), "left")
    assert(inputsOf(checkSplit(join(star, right(0), "inner", "l" -> "r"))) === Seq(2, 1))
    // And through one of ours.
    val ours = multiJoin(
      Seq(skewed(0, 800, 2), skewed(2, 60)),
      Seq("k"),
      roles = Seq("required", "optional"))
    assert(inputsOf(checkSplit(join(ours, right(0), "left", "k" -> "r"))) === Seq(2, 1))
  }

  test("slices do not go through joins that need all rows, or where nothing is gained", Slow) {
    val condition = col("l") === col("c") && col("v0") > col("v2")
    // The skewed rows may be what another row has no match among.
    val needed = left(0).join(third(2).hint("shuffle_hash"), condition, "left")
    val df = join(needed, right(0), "inner", "l" -> "r")
    checkWhole(df)
    assert(reasons(df).contains(SkewReason.InputNotSliceable))
    // The keys that are not in the first join would need all of it once more.
    val first = left(2).join(third(0).hint("shuffle_hash"), condition, "left")
    val residual = join(first, right(0), "full", "l" -> "r")
    checkWhole(residual)
    assert(reasons(residual).contains(SkewReason.LittleGain))
  }

  test("a left semi join whose right side is ranked or aggregated") {
    val ranked = right(2).withColumn("n", rank().over(byKey.orderBy("v1"))).where("n > 3")
    val split = checkSplit(join(left(0), ranked, "left_semi", "l" -> "r"))
    assert(split.splits.residuals > 0)
    // Of the hot key's 350 rows one is kept.
    assert(split.metrics("numRowsOfInput1").value < 350)
  }

  private val shapes: Gen[DataFrame] = for {
    n <- Gen.choose(3, 4)
    hot <- Gen.choose(0, n - 1)
    maps <- Gen.listOfN(n, Gen.oneOf(1, 3))
    hows <- Gen.listOfN(
      n,
      Gen.frequency(
        3 -> "inner",
        3 -> "left",
        2 -> "right",
        2 -> "full",
        2 -> "left_semi",
        1 -> "left_anti"))
    hints <- Gen.listOfN(n, Gen.oneOf("merge", "shuffle_hash"))
    made <- Gen.listOfN(n, Gen.choose(0, 6))
    deep <- Gen.oneOf("left", "right", "both")
    conditions <- Gen.listOfN(n, Gen.frequency(6 -> false, 1 -> true))
  } yield {
    // Every table and every join has its key as `k0`, `k1`, ...
    val tables = (0 until n).map { i =>
      val df = skewed(i, if (i == hot) 500 else 40, if (i == hot) 2 else 0, 30, maps(i))
        .withColumnRenamed("k", s"k$i")
        .drop(s"s$i")
      val w = Window.partitionBy(s"k$i")
      made(i) match {
        case _ if i == hot => df
        case 0 => df.withColumn(s"v$i", sum(s"v$i").over(w) + col(s"v$i"))
        case 1 => df.withColumn(s"v$i", rank().over(w.orderBy(col(s"v$i") % 5)) + col(s"v$i"))
        case 2 => df.groupBy(s"k$i").agg(max(s"v$i").as(s"v$i"))
        case _ => df
      }
    }
    def joined(l: (DataFrame, Int), r: (DataFrame, Int), j: Int): (DataFrame, Int) = {
      val ((a, i), (b, m)) = (l, r)
      val on = col(s"k$i") === col(s"k$m")
      val both = if (conditions(j)) on && col(s"v$i") % 3 =!= col(s"v$m") % 3 else on
      // The side whose key each row has.
      (a.join(b.hint(hints(j)), both, hows(j)), if (hows(j) == "right") m else i)
    }
    val leaves = tables.zipWithIndex
    (deep match {
      case "left" => leaves.tail.foldLeft(leaves.head)((l, r) => joined(l, r, r._2))
      case "right" => leaves.init.foldRight(leaves.last)((l, r) => joined(l, r, l._2))
      case _ =>
        val (a, b) = leaves.splitAt(2)
        joined(a.reduceLeft(joined(_, _, 1)), b.reduceLeft(joined(_, _, 2)), 0)
    })._1
  }

  test("random trees of joins", Slow) {
    val runs = if (testAll) 14 else 8
    checkSplits(runs, wanted = runs / 4) { seed =>
      val df = shapes.pureApply(Gen.Parameters.default, Seed(seed))
      withClue(s"seed $seed: ${df.queryExecution.analyzed}") {
        withSQLConf(Advisory -> "1000", "spark.sql.codegen.wholeStage" -> "false") {
          assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
        }
        splitJoins(df).nonEmpty
      }
    }
  }
}
