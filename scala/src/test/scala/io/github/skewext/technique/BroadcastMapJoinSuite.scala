package io.github.skewext.technique

import io.github.skewext.Joins
import io.github.skewext.platform.SkewConf
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{AnalysisException, DataFrame}

/** Joins with a broadcast side whose unmatched rows come out. */
class BroadcastMapJoinSuite extends TechniqueTest {

  private def large = skewed(0, 400, hot = 2).withColumn("j", (col("v0") % 3).cast("int"))

  private def small = skewed(30, 25, keys = 12).withColumn("j", (col("v30") % 4).cast("long"))

  private val Technique = "broadcast_map"

  private def marked(df: DataFrame): Seq[MarkedBroadcastJoinExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case j: MarkedBroadcastJoinExec => j }

  private def onSide(side: String) = Map("side" -> side)

  for (how <- Hows; side <- Seq("left", "right")) {
    test(s"$how join, the $side side is broadcast") {
      val (l, r) = if (side == "right") (large, small) else (small, large)
      // A composite key of different types, with nulls and duplicates on both sides.
      check(l, r, Seq("k", "j"), how, Technique, onSide(side))
      val df = check(l, r, "k", how, Technique, onSide(side))
      assert(made(df).distinct.size === 1)
      val preserved = if (side == "right") Seq("right", "full") else Seq("left", "full")
      // The small side is broadcast once.
      val isMarked = preserved.contains(how)
      assert(marked(df).size === (if (isMarked) 1 else 0))
      if (isMarked) assert(broadcasts(df) === 1)
      // Nothing is shuffled but keys that were met, where the join is about which these are.
      val shuffles = exchanges(df)
      assert(shuffles.size === (if (side == "left" && how.startsWith("left_")) 1 else 0))
      shuffles.foreach(e => assert(e.output.map(_.name) === Seq("key0")))
    }
  }

  test("sides without rows, without matches, and with nothing but nulls", Slow) {
    val none = large.where("v0 < 0")
    val nulls = small.withColumn("k", lit(null).cast("long"))
    val others = small.withColumn("k", col("k") + 1000)
    val cases = for {
      how <- Seq("left", "full", "left_anti")
      side <- Seq("left", "right")
      rows <- Seq(none -> small, large -> none, large -> others, large -> nulls)
    } yield (how, side, rows)
    for ((how, side, (l, r)) <- some(8, cases)) {
      val (a, b) = if (side == "right") (l, r) else (r, l)
      check(a, b, "k", how, Technique, onSide(side))
    }
  }

  test("-0.0 and NaN are keys as in Spark's joins") {
    val doubles = "(-0.0D, 1), (0.0D, 2), (double('NaN'), 3), (null, 4), (7.0D, 5)"
    val l = table("k, v", doubles)
    val r = table("k, w", "(0.0D, 1), (double('NaN'), 2), (null, 3), (8.0D, 4)")
    for (how <- Seq("right", "full", "left_anti"); side <- Seq("left", "right")) {
      check(l, r, "k", how, Technique, onSide(side))
    }
  }

  test("the large side is read twice, the second time its keys only") {
    withTempPath { path =>
      large.write.parquet(path.getPath)
      val read = spark.read.parquet(path.getPath)
      val df = check(read, small, "k", "full", Technique)
      val scans = collectWithSubqueries(df.queryExecution.executedPlan) {
        case scan: FileSourceScanExec => scan.requiredSchema.fieldNames.toSeq
      }
      assert(scans.map(_.toSet).toSet === Set(read.columns.toSet, Set("k")))
      assert(scans.size === 2)
    }
  }

  test("returns unmatched rows of the small side once, for any layout of its table", Slow) {
    // One row for each key, or several; keys that fit a long, or do not.
    val distinct = small.groupBy("k").agg(max("v30").as("v30"))
    val cases = for (how <- Seq("right", "full"); rows <- Seq(small, distinct)) yield (rows, how)
    // Each of the tables, with one of the types each.
    for ((rows, how) <- if (testAll) cases else Seq(cases.head, cases.last)) {
      val df = check(large, rows, "k", how, Technique, onSide("right"))
      val Seq(join) = marked(df)
      val unmatched = rows.where("k IS NOT NULL").join(large, Seq("k"), "left_anti").count()
      assert(unmatched > 0 && join.metrics("numUnmatchedRows").value === unmatched)
      def text(side: DataFrame) = side.withColumn("k", concat(lit("key"), col("k")))
      check(text(large), text(rows), "k", how, Technique, onSide("right"))
    }
  }

  test("in generated code") {
    inGeneratedCode {
      check(large, small, "k", "full", Technique, onSide("right"))
      check(small, large, Seq("k", "j"), "full", Technique, onSide("left"))
    }
  }

  test("a condition besides the key, and null-safe comparisons", Slow) {
    val (l, r) = (large.as("l"), small.as("r"))
    val more = col("l.k") === col("r.k") && col("l.v0") > col("r.v30") * 3
    // Who matches decides about the large side only.
    for (how <- Seq("inner", "left")) check(l, r, more, how, Technique, onSide("right"))
    val refused =
      intercept[AnalysisException](skewJoin(l, r, more, "full", Technique, onSide("right")))
    assert(refused.getMessage.contains(TechniqueReason.Condition.text))
    val nullSafe = col("l.k") <=> col("r.k")
    for (how <- Seq("full", "left_anti"); side <- Seq("left", "right")) {
      check(l, r, nullSafe, how, Technique, onSide(side))
    }
  }

  test("the same DataFrame on both sides, and a result that is joined with itself", Slow) {
    for (how <- Seq("inner", "full")) check(small, small, "k", how, Technique)
    val full = skewJoin(large, small, "k", "full", Technique)
    val stock = large.join(small, Seq("k"), "full")
    val counted = full.groupBy("k").count()
    assertStock(
      full.join(counted, "k").where("count > 3"),
      stock.join(stock.groupBy("k").count(), "k").where("count > 3"))
    assertStock(
      full.join(full.select("k"), Seq("k"), "left"),
      stock.join(stock.select("k"), Seq("k"), "left"))
  }

  test("predicates above are pushed through and change the join type") {
    val full = skewJoin(large, small, "k", "full", Technique, onSide("right"))
    val stock = large.join(small, Seq("k"), "full")
    def above(df: DataFrame) = df.where("v0 > 7 AND k < 30").select("k", "v30")
    assertStock(above(full), above(stock))
    // The large side is asked for, so no row of the small one alone comes out.
    assert(exchanges(above(full)).isEmpty)
  }

  test("a side whose reader drops records, which depends on the columns that are read") {
    withTempPath { path =>
      table("s", "('1,10'), ('2,none'), ('3,30')").coalesce(1).write.text(path.getPath)
      def left = spark.read.schema("k INT, v INT").option("mode", "dropMalformed").csv(path.getPath)
      val right = table("k, w", "(1, 1), (2, 2), (4, 4)")
      for (technique <- Seq("broadcast_map", "iterative_broadcast")) {
        def join() = skewJoin(left, right, "k", "full", technique, Map("side" -> "right"))
        val error = intercept[AnalysisException](join())
        assert(error.getMessage.contains(TechniqueReason.NotStable.text))
      }
      check(left, right, "k", "full", "auto")
      val parquet = s"${path.getPath}-parquet"
      table("k, v", "(1, 10), (2, 20)").write.parquet(parquet)
      for (key <- Seq("ignoreCorruptFiles", "ignoreMissingFiles")) {
        val some = spark.read.option(key, "true").parquet(parquet)
        val error =
          intercept[AnalysisException](skewJoin(some, right, "k", "full", "broadcast_map"))
        assert(error.getMessage.contains(TechniqueReason.NotStable.text))
      }
      check(spark.read.parquet(parquet), right, "k", "full", "broadcast_map")
    }
  }

  test("a side that selects records by the column of malformed ones") {
    withTempPath { path =>
      table("s", "('1,10'), ('2,none'), ('3,30')").coalesce(1).write.text(path.getPath)
      val rows = spark.read.schema("k INT, v INT, _corrupt_record STRING").csv(path.getPath)
      val right = table("k, w", "(1, 1), (2, 2), (4, 4)")
      val passedOn = rows.select("k", "v", "_corrupt_record")
      check(passedOn, right, "k", "full", "broadcast_map", Map("side" -> "right"))
      for (left <- Seq(
          rows.where("_corrupt_record IS NULL").drop("_corrupt_record"),
          rows.withColumnRenamed("_corrupt_record", "bad").where("bad IS NULL"))) {
        val error = intercept[AnalysisException](
          skewJoin(left, right, "k", "full", "broadcast_map", Map("side" -> "right")))
        assert(error.getMessage.contains(TechniqueReason.NotStable.text))
        check(left, right, "k", "full", "auto")
      }
    }
  }

  test("keys for which Spark generates no code") {
    val left = table("xs, v", "(array(1L), 1), (array(2L, 3L), 2), (array(7L), 3)")
    val right = table("k, w", "(1L, 1), (5L, 2), (6L, 3)")
    val on = expr("aggregate(xs, 0L, (s, x) -> s + x)") === right("k")
    for (codegen <- Seq("true", "false")) withSQLConf("spark.sql.codegen.wholeStage" -> codegen) {
      check(left, right, on, "full", "broadcast_map", Map("side" -> "right"))
    }
  }

  test("a side that may be another one when it is read again is refused") {
    val random = large.where(rand(3) < 0.5)
    for (unstable <- Seq(random, large.limit(50), large.sample(0.5, 1))) {
      val error = intercept[AnalysisException](skewJoin(unstable, small, "k", "full", Technique))
      assert(error.getMessage.contains(TechniqueReason.NotStable.text))
      assert(error.getMessage.contains("left side"))
      // Where one pass will do, it may be.
      skewJoin(unstable, small, "k", "left", Technique, onSide("right")).collect()
    }
    // What is cached may be lost, and made again.
    val cached = random.cache()
    try {
      intercept[AnalysisException](skewJoin(cached, small, "k", "full", Technique))
    } finally {
      cached.unpersist()
    }
    check(random.localCheckpoint(), small, "k", "full", Technique)
  }

  test("a side is refused if the columns that are read decide which of several rows it has") {
    val rows = table("k, t, x, w, v", "(1, 1, 1, 1, 20), (1, 1, 1, 2, 10)")
    val other = table("v, n", "(10, 'a'), (20, 'b')")
    def latest(ties: String*) =
      Joins.latest(rows, Seq("k"), Seq(col("t")), Some(ties.map(col)))
    val first = rows
      .selectExpr("*", "row_number() OVER (PARTITION BY k ORDER BY t) AS n")
      .where("n = 1")
      .drop("n")
    withSQLConf(
      SkewConf.LATEST_REWRITE.key -> "true",
      "spark.sql.optimizer.windowGroupLimitThreshold" -> "-1") {
      for (technique <- Seq("broadcast_map", "iterative_broadcast");
        side <- Seq(latest("x"), first)) {
        val error = intercept[AnalysisException](
          skewJoin(side, other, "v", "full", technique, onSide("right")))
        assert(error.getMessage.contains(TechniqueReason.NotStable.text))
      }
    }
    check(latest("x", "w", "v"), other, "v", "full", Technique, onSide("right"))
  }

  test("ANSI: a cast of the key is evaluated only for rows of the side", Slow) {
    withSQLConf("spark.sql.ansi.enabled" -> "true") {
      val (numbers, text) = numbersAndText
      val on = numbers("k") === text("s")
      // Spark pushes its own semi-joins below the joins of the left side.
      for ((l, r) <- Seq(numbers -> text, text -> numbers); side <- Seq("left", "right")) {
        val df = check(l, r, on, "full", Technique, onSide(side))
        assert(marked(df).size === 1 && isKeptInPlace(df))
      }
      check(numbers, text, on, "left_anti", Technique, onSide("left"))
      // Such a side may be read twice.
      val inner = skewJoin(numbers, text, on, "full", Technique, onSide("right")).select("k", "v")
      assert(isKeptInPlace(check(inner, small, "k", "full", Technique)))
      assert(!isKeptInPlace(check(large, small, "k", "full", Technique)))
    }
  }

  test("ANSI: a cast of the key in a side is evaluated only for rows of the side", Slow) {
    checkCastsInSides(Technique, onSide)
  }

  test("a predicate above changes the type of the join before the technique plans it") {
    withTempPath { path =>
      large.write.parquet(path.getPath)
      val fact = spark.read.parquet(path.getPath)
      val filtered = "v0 > 7"
      def scans(df: DataFrame): Seq[String] =
        collectWithSubqueries(df.queryExecution.executedPlan) { case s: FileSourceScanExec =>
          s.metadata("PushedFilters")
        }
      for (how <- Seq("left", "full")) {
        val df = skewJoin(small, fact, "k", how, Technique, onSide("left")).where(filtered)
        assertStock(df, stockJoin(small, fact, "k", how).where(filtered))
        assert(marked(df).isEmpty)
        assert(made(df) === Seq(Technique))
        // The large side is read once, and the predicate is at its scan.
        assert(scans(df).size === 1)
        assert(scans(df).head.contains("GreaterThan(v0,7)"), scans(df))
      }
      // A predicate that an unmatched row of the small side satisfies.
      val unmatched =
        skewJoin(small, fact, "k", "left", Technique, onSide("left")).where("v0 IS NULL")
      assertStock(unmatched, stockJoin(small, fact, "k", "left").where("v0 IS NULL"))
      assert(marked(unmatched).size === 1)
    }
  }

  test("a predicate above a full outer join leaves broadcast the choice of the side", Slow) {
    withTempPath { path =>
      large.write.parquet(path.getPath)
      val fact = spark.read.parquet(path.getPath)
      def checkSmallIsBroadcast(df: DataFrame, isMarked: Boolean): Unit = {
        assert(made(df) === Seq("broadcast"))
        assert(marked(df).size === (if (isMarked) 1 else 0))
        val how = contents(df).collect { case TechniqueHint.Made(_, _, how, _) => how }
        assert(how.map(_.takeWhile(_ != '(')) === Seq("the left side "))
        assert(exchanges(df).isEmpty)
      }
      withTempView("dims", "facts") {
        small.createOrReplaceTempView("dims")
        fact.createOrReplaceTempView("facts")
        for ((filter, isMarked) <- Seq("v30 > 4" -> true, "v0 > 7" -> false)) {
          val stock = stockJoin(small, fact, "k", "full").where(filter)
          for (options <- Seq(Map.empty[String, String], onSide("left"))) {
            val df = skewJoin(small, fact, "k", "full", "broadcast", options).where(filter)
            assertStock(df, stock)
            checkSmallIsBroadcast(df, isMarked)
          }
          for (from <- Seq("dims FULL JOIN facts", "(SELECT * FROM dims) d FULL JOIN facts")) {
            val name = if (from.contains(" d ")) "d" else "dims"
            val hinted = spark.sql(
              s"SELECT /*+ SKEWEXT_JOIN($name, broadcast) */ * FROM $from USING (k) WHERE $filter")
            assertStock(hinted, stock)
            checkSmallIsBroadcast(hinted, isMarked)
          }
        }
      }
    }
    // With a condition, only Spark can broadcast, and only the other side.
    withTempView("dims", "others") {
      small.createOrReplaceTempView("dims")
      small.toDF(small.columns.map(c => s"o$c"): _*).createOrReplaceTempView("others")
      val from = "dims d FULL JOIN others ON k = ok AND d.v30 + 1 > ov30 WHERE d.v30 > 4"
      val df = spark.sql(s"SELECT /*+ SKEWEXT_JOIN(d, broadcast) */ * FROM $from")
      assertStock(df, spark.sql(s"SELECT * FROM $from"))
      assert(marked(df).isEmpty && broadcasts(df) === 1)
    }
    // Spark can broadcast only the right side of a join that is written as a left outer join.
    val df = skewJoin(large, small, "k", "left", "broadcast").where("v0 > 7")
    assertStock(df, stockJoin(large, small, "k", "left").where("v0 > 7"))
    assert(marked(df).isEmpty && broadcasts(df) === 1)
  }
}
