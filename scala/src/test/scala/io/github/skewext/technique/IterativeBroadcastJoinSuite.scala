package io.github.skewext.technique

import io.github.skewext.explain.Explainer
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.{AnalysisException, DataFrame, Row}

/** Joins with a side that is broadcast in chunks. */
class IterativeBroadcastJoinSuite extends TechniqueTest {

  private val Technique = "iterative_broadcast"

  private def large = skewed(0, 300, hot = 2).withColumn("j", (col("v0") % 3).cast("int"))

  private def small = skewed(30, 45, keys = 12).withColumn("j", (col("v30") % 4).cast("long"))

  private def options(side: String, chunks: Int, passes: Int = 1) =
    Map("side" -> side, "chunks" -> chunks.toString, "passes" -> passes.toString)

  private def hashJoins(df: DataFrame): Int =
    collectWithSubqueries(df.queryExecution.executedPlan) { case j: BroadcastHashJoinExec =>
      j
    }.size

  private def how(df: DataFrame): String =
    contents(df).collect { case TechniqueHint.Made(_, _, how, _) => how }.head

  for (how <- Hows; side <- Seq("left", "right")) {
    test(
      s"$how join, the $side side is cut",
      Slow(
        "full join, the left side is cut",
        "full join, the right side is cut",
        "left join, the left side is cut",
        "left_semi join, the left side is cut",
        "right join, the right side is cut")) {
      val (l, r) = if (side == "right") (large, small) else (small, large)
      // A composite key of different types, with nulls and duplicates on both sides.
      for ((chunks, passes) <- if (testAll) Seq((1, 1), (4, 3)) else Seq((4, 3))) {
        check(l, r, Seq("k", "j"), how, Technique, options(side, chunks, passes))
      }
      val df = check(l, r, "k", how, Technique, options(side, chunks = 3))
      assert(made(df).toSet === Set(Technique))
      val preserved = side match {
        case "right" => Seq("right", "full")
        case _ => Seq("left", "full", "left_semi", "left_anti")
      }
      val picks = side == "left" && how.startsWith("left_")
      assert(hashJoins(df) === (if (preserved.contains(how) && !picks) 6 else 3))
      // Nothing of the large side is shuffled but the keys that were met.
      exchanges(df).foreach { e =>
        val columns = e.output.map(_.name)
        assert(
          columns === Seq("key0") || columns.exists(_.startsWith("v30")) || columns.size == 1,
          e)
        assert(!columns.exists(_.startsWith("v0")), e)
      }
      if (!preserved.contains(how)) assert(exchanges(df).isEmpty)
      val joins = SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution)).joins
      assert(joins.exists(_.origin.text.contains("skew_join by iterative_broadcast: the ")), joins)
    }
  }

  test("a pass reads the large side once, whatever the number of chunks", Slow) {
    withTempPath { path =>
      large.write.parquet(path.getPath)
      val read = spark.read.parquet(path.getPath)
      def scans(df: DataFrame): Seq[Seq[String]] =
        collectWithSubqueries(df.queryExecution.executedPlan) { case s: FileSourceScanExec =>
          s.output.map(_.name)
        }
      def reads(df: DataFrame): Int =
        scans(df).count(_.contains("v0"))
      for (how <- Seq("inner", "left"); passes <- Seq(1, 2)) {
        val df = check(read, small, "k", how, Technique, options("right", 4, passes))
        assert(reads(df) === passes)
        assert(this.how(df).contains(s"read ${if (passes == 1) "once" else "twice"}"))
      }
      val full = check(read, small, "k", "full", Technique, options("right", 4))
      assert(reads(full) === 1)
      // The second time nothing but its keys.
      assert(scans(full).count(_ == Seq("k")) === 1)
      assert(how(full).contains("read once, its keys once more"), how(full))
    }
  }

  test("chunks and passes by the sizes of the sides") {
    val bytes = small.queryExecution.optimizedPlan.stats.sizeInBytes.toLong
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> (bytes / 3 + 1).toString) {
      val df = check(large, small, "k", "left", Technique, Map("side" -> "right"))
      assert(how(df).contains("is broadcast in 3 chunks, the left side"), how(df))
      assert(hashJoins(df) === 3)
    }
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> (bytes + 1).toString) {
      val df = check(large, small, "k", "left", Technique, Map("side" -> "right"))
      assert(how(df).contains("is broadcast in 1 chunk, the left side"), how(df))
    }
    // The smaller side is cut.
    assert(how(check(large, small, "k", "inner", Technique)).startsWith("the right side"))
    assert(how(check(small, large, "k", "inner", Technique)).startsWith("the left side"))
    withSQLConf("spark.skewext.skewJoin.maxBroadcastBytes" -> (bytes / 40).toString) {
      val error = intercept[AnalysisException](
        skewJoin(large, small, "k", "left", Technique, Map("side" -> "right")))
      assert(error.getMessage.contains(TechniqueReason.TooLarge.text))
      assert(error.getMessage.contains("needs more than 32 chunks"), error)
      assert(
        error.getMessage.contains("set the option chunks to 41, or raise spark.skewext"),
        error)
    }
  }

  test("sides without rows, without matches, and with nothing but nulls", Slow) {
    val none = large.where("v0 < 0")
    val nulls = small.withColumn("k", lit(null).cast("long"))
    val others = small.withColumn("k", col("k") + 1000)
    val cases = for {
      how <- Seq("full", "left_anti")
      side <- Seq("left", "right")
      rows <- Seq(none -> small, large -> none, large -> others, large -> nulls)
    } yield (how, side, rows)
    for ((how, side, (l, r)) <- some(6, cases)) {
      val (a, b) = if (side == "right") (l, r) else (r, l)
      check(a, b, "k", how, Technique, options(side, chunks = 2))
    }
  }

  test("-0.0 and NaN are keys as in Spark's joins", Slow) {
    val l = table("k, v", "(-0.0D, 1), (0.0D, 2), (double('NaN'), 3), (null, 4), (7.0D, 5)")
    val r = table("k, w", "(0.0D, 1), (double('NaN'), 2), (null, 3), (8.0D, 4)")
    for (how <- Seq("full", "inner", "left_semi"); side <- Seq("left", "right")) {
      check(l, r, "k", how, Technique, options(side, chunks = 3))
    }
  }

  test("a condition besides the key, and null-safe comparisons", Slow) {
    val (l, r) = (large.as("l"), small.as("r"))
    val more = col("l.k") === col("r.k") && col("l.v0") > col("r.v30") * 3
    for (how <- Seq("inner", "left", "left_semi", "left_anti")) {
      check(l, r, more, how, Technique, options("right", chunks = 3))
    }
    for ((how, side) <- Seq("full" -> "right", "right" -> "right", "left_anti" -> "left")) {
      val refused =
        intercept[AnalysisException](
          skewJoin(l, r, more, how, Technique, options(side, chunks = 3)))
      assert(refused.getMessage.contains(TechniqueReason.Condition.text))
    }
    for (how <- Seq("full", "left_anti")) {
      check(l, r, col("l.k") <=> col("r.k"), how, Technique, options("right", chunks = 3))
    }
  }

  test("a side that is read several times may not be another one each time") {
    val random = small.where(rand(3) < 0.5)
    val error = intercept[AnalysisException](
      skewJoin(large, random, "k", "inner", Technique, options("right", chunks = 2)))
    assert(error.getMessage.contains(TechniqueReason.NotStable.text))
    assert(error.getMessage.contains("right side"))
    val unstable = large.where(rand(3) < 0.5)
    def join(how: String, passes: Int) =
      skewJoin(unstable, small, "k", how, Technique, options("right", chunks = 2, passes))
    for ((how, passes) <- Seq("full" -> 1, "inner" -> 2)) {
      assert(intercept[AnalysisException](join(how, passes)).getMessage.contains("left side"))
    }
    // One pass will do.
    join("left", 1).collect()
  }

  test("the same DataFrame on both sides, and a result that is joined with itself", Slow) {
    check(small, small, "k", "full", Technique, options("right", chunks = 2))
    val df = skewJoin(large, small, "k", "full", Technique, options("right", chunks = 2))
    val stock = large.join(small, Seq("k"), "full")
    assertStock(
      df.join(df.groupBy("k").count(), "k").where("count > 3 AND v0 > 5"),
      stock.join(stock.groupBy("k").count(), "k").where("count > 3 AND v0 > 5"))
  }

  test("rejects wrong options when called") {
    def error(options: (String, String)*): String = intercept[AnalysisException](
      skewJoin(large, small, "k", "full", Technique, options.toMap)).getMessage
    assert(error("chunks" -> "0").contains("The option chunks must be a whole number between 1"))
    assert(error("chunks" -> "2", "passes" -> "3").contains("between 1 and 2"))
    assert(error("side" -> "both").contains("one of left, right"))
  }

  test("ANSI: a cast of the key is evaluated only for rows of the side", Slow) {
    withSQLConf("spark.sql.ansi.enabled" -> "true") {
      val (numbers, text) = numbersAndText
      val on = numbers("k") === text("s")
      // Spark pushes its own semi-joins below the joins of the left side.
      for ((l, r) <- Seq(numbers -> text, text -> numbers); side <- Seq("left", "right")) {
        check(l, r, on, "full", Technique, options(side, chunks = 2))
      }
      for ((how, side) <- Seq("inner" -> "right", "left_semi" -> "left", "left_anti" -> "right")) {
        check(numbers, text, on, how, Technique, options(side, chunks = 2, passes = 2))
      }
      // Other predicates on keys are pushed down.
      val plain = check(large, small, "k", "inner", Technique, options("right", 3, 2))
      assert(!isKeptInPlace(plain))
      assert(isKeptInPlace(skewJoin(numbers, text, on, "inner", Technique, options("right", 3))))
    }
    val (numbers, text) = numbersAndText
    val on = numbers("k") === text("s").cast("int")
    withSQLConf("spark.sql.ansi.enabled" -> "false") {
      assert(!isKeptInPlace(check(numbers, text, on, "inner", Technique, options("right", 3, 2))))
    }
  }

  test("ANSI: a cast of the key in a side is evaluated only for rows of the side", Slow) {
    checkCastsInSides(Technique, options(_, chunks = 2))
  }

  test("a side of unknown size is cut in one pass") {
    val unknown =
      frame("k long, w int")((0 until 40).map(k => Row(k.toLong, 1)): _*).localCheckpoint()
    val df = check(large, unknown, "k", "left", Technique, Map("side" -> "right", "chunks" -> "4"))
    assert(how(df).contains("(of unknown size) is broadcast in 4 chunks, the left side"), how(df))
    assert(how(df).contains("read once"), how(df))
  }

  test("a correlated subquery in the condition") {
    withTempView("a", "b", "t") {
      large.createOrReplaceTempView("a")
      small.createOrReplaceTempView("b")
      table("x", "(1), (2), (5), (8)").createOrReplaceTempView("t")
      def joined(how: String, exists: String) = spark.sql(
        s"SELECT /*+ SKEWEXT_JOIN(b, $Technique, 'chunks=2', 'passes=2', 'side=right') */ * " +
          s"FROM a $how JOIN b ON a.k = b.k AND $exists (SELECT 1 FROM t WHERE t.x = a.v0)")
      for (how <- Seq("INNER", "LEFT", "LEFT SEMI", "LEFT ANTI");
        exists <- Seq("EXISTS", "NOT EXISTS"))
        withClue(s"$how, $exists: ") {
          val df = joined(how, exists)
          assert(made(df).nonEmpty)
          // Spark 3.5 fails to evaluate such a subquery in a join.
          if (!SPARK_VERSION.startsWith("3.")) assertStock(df, df)
        }
    }
  }
}
