package io.github.skewext.technique

import java.util.concurrent.atomic.{AtomicBoolean, AtomicInteger}

import scala.util.Random

import io.github.skewext.RandomSeed
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.expressions.UserDefinedFunction
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{RetriedTasks, TestShims, TestShuffles}
import org.apache.spark.sql.types.LongType
import org.apache.spark.sql.{AnalysisException, Column, DataFrame, Row}
import org.apache.spark.unsafe.types.UTF8String

/** Joins on the key and a salt. */
class SaltedJoinSuite extends TechniqueTest with RetriedTasks {

  private val Technique = "salted"

  /** Key 3 is hot on the left, where 50 is alone with many rows, 8 and 50 are not on the right. */
  private def left = skewed(0, 300, hot = 2)
    .withColumn(
      "k",
      when(col("v0") % 13 === 1, 50L).when(col("v0") % 13 === 2, 9L).otherwise(col("k")))
    .withColumn("j", (col("v0") % 3).cast("int"))

  /** Keys 9 and 60 are hot here; 60 is not on the left. */
  private def right = skewed(1, 120, keys = 12)
    .withColumn(
      "k",
      when(col("v1") % 5 === 1, 9L).when(col("v1") % 7 === 2, 60L).otherwise(col("k")))
    .withColumn("j", (col("v1") % 4).cast("long"))

  private val Hot: Seq[Seq[Column]] =
    Seq(3, 50, 9, 60, 777).map(key => Seq(lit(key)))

  private def salted(df: DataFrame): Seq[SaltKeysExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case s: SaltKeysExec => s }

  private def metric(s: SaltKeysExec, name: String): Long = s.metrics(name).value

  /** The numbers of rows in the cells of a side. */
  private def cells(side: SaltKeysExec): Map[Int, Int] = {
    val at = side.output.indexWhere(_.exprId == side.added.head.exprId)
    side.execute().map(_.getInt(at)).collect().groupBy(identity).map { case (cell, rows) =>
      cell -> rows.length
    }
  }

  private def isDivided(df: DataFrame): Boolean = salted(df).exists(cells(_).keys.exists(_ > 0))

  private def checkSalted(
      l: DataFrame,
      r: DataFrame,
      on: Any,
      how: String,
      options: Map[String, String] = Map.empty,
      hotKeys: Seq[Seq[Column]] = null): DataFrame = {
    val df = skewJoin(l, r, on, how, Technique, options, hotKeys)
    assertStock(df, stockJoin(l, r, on, how))
    assert(salted(df).size === 2, df.queryExecution.executedPlan)
    df
  }

  test(
    "a key gets more parts than its rows need while their copies add at most 2 % of all rows",
    Slow) {
    withSQLConf("spark.sql.shuffle.partitions" -> "16") {
      // Half of 2,000 rows have key 7, and so have some of the other side.
      def join(matches: Int): DataFrame = checkSalted(
        spark.range(0, 1000, 1, 2).selectExpr("if(id % 2 = 0, 7, id + 10) AS k", "id AS v"),
        spark
          .range(0, 1000, 1, 2)
          .selectExpr(s"if(id < $matches, 7, id % 400 + 5000) AS k", "id AS w"),
        "k",
        "inner")
      // A quarter of all rows: four of sixteen partitions need four parts, and 16 are the most.
      for ((matches, parts) <- Seq(1 -> 16, 2 -> 16, 4 -> 11, 8 -> 6, 13 -> 4, 40 -> 4)) {
        val df = join(matches)
        withClue(s"$matches: ") {
          assert(described(df).endsWith(s"divided in parts, on the left up to $parts"))
          val copies = salted(df).map(metric(_, "numCopies")).sum
          assert(copies === matches * (parts - 1))
          assert(parts == 4 || copies <= 0.02 * 2000)
        }
      }
    }
  }

  private def described(df: DataFrame): String = contents(df).collectFirst {
    case TechniqueHint.Made(_, _, how, _) => how
  }.get

  for (how <- Hows) {
    test(s"$how join: keys that are hot on the left, on the right, on both sides, nowhere", Slow) {
      for (side <- Seq("left", "right", "both")) {
        val df = checkSalted(left, right, "k", how, Map("side" -> side, "salts" -> "3"), Hot)
        assert(made(df) === Seq(Technique))
        assert(exchanges(df).size === 2)
        exchanges(df).foreach { e =>
          assert(e.outputPartitioning.toString.contains("cell"), e)
        }
      }
      val composite = Seq(3 -> 0, 3 -> 2, 9 -> 1, 60 -> 1).map { case (k, j) =>
        Seq(lit(k), lit(j))
      }
      checkSalted(left, right, Seq("k", "j"), how, Map("side" -> "both"), composite)
    }
  }

  test("tables at random, with few keys that are all hot", Slow) {
    val random = new Random(7)
    def rows(n: Int) = Seq.fill(n) {
      def key(from: Int) = if (random.nextInt(8) == 0) null else from + random.nextInt(4)
      Row(key(0), key(0), random.nextInt(3))
    }
    for (_ <- 1 to (if (testAll) 2 else 1); how <- Hows) {
      val l = frame("a int, b int, x int", 3)(rows(random.nextInt(25)): _*)
      val r = frame("a int, b int, y int", 2)(rows(random.nextInt(25)): _*)
      val side = Seq("left", "right", "both")(random.nextInt(3))
      val hot = (0 to 15).filter(_ => random.nextBoolean()).map(n => Seq(lit(n / 4), lit(n % 4)))
      def check(on: Seq[String], salts: Int, hot: Seq[Seq[Column]]): Unit = assertStock(
        skewJoin(l, r, on, how, Technique, Map("side" -> side, "salts" -> salts.toString), hot),
        stockJoin(l, r, on, how))
      check(Seq("a", "b"), 2, hot :+ Seq(lit(9), lit(9)))
      check(Seq("a"), 4, Seq(0, 1, 9).map(k => Seq(lit(k))))
    }
  }

  test("only rows of hot keys have salts, and only such of the other side are repeated", Slow) {
    val df =
      checkSalted(left, right, "k", "full", Map("salts" -> "4", "side" -> "left"), Seq(Seq(lit(3))))
    val Seq(l, r) = salted(df)
    assert(metric(l, "numCopies") === 0)
    // Each map task has rows of the key.
    assert(metric(l, "numMarkers") === 4)
    assert(metric(l, "numOutputRows") === left.count() + 4)
    assert(metric(r, "numCopies") === 3 * right.where("k = 3").count())
    assert(metric(r, "numMarkers") === 0)
    assert(metric(r, "numOutputRows") === right.count() + metric(r, "numCopies"))
    // Where no unmatched row of the repeated side comes out, there is nothing to mark, or to drop.
    for (how <- Seq("inner", "left", "left_semi", "left_anti")) {
      val df =
        checkSalted(left, right, "k", how, Map("salts" -> "4", "side" -> "left"), Seq(Seq(lit(3))))
      assert(metric(salted(df).head, "numMarkers") === 0)
      assert(!df.queryExecution.executedPlan.exists {
        case shuffle: ShuffleExchangeLike => shuffle.output.exists(_.name == "kind")
        case _ => false
      })
    }
  }

  test("semi and anti joins keep one row per hot key and task on the right", Slow) {
    for (how <- Seq("left_semi", "left_anti")) {
      val df = checkSalted(left, right, "k", how, Map("side" -> "right"), Hot)
      val Seq(l, r) = salted(df)
      assert(metric(l, "numCopies") === 0)
      // Two keys in four tasks, and a few of others.
      val hot = right.where("k IN (3, 9, 50, 60)").count()
      val others = right.where("k NOT IN (3, 9, 50, 60)").count()
      assert(hot > 40 && metric(r, "numOutputRows") - others <= 4 * 3)
    }
  }

  test("hot keys are found, and divided by how many rows they have", Slow) {
    val df = checkSalted(left, right, "k", "full")
    val keys = salted(df).head.salted.hot
    // A fifth of the rows of both sides is what a partition has on average.
    assert(keys.map(_.key.getLong(0)) === Seq(3L))
    val share = left.where("k = 3").count().toDouble /
      (left.where("k IS NOT NULL").count() + right.where("k IS NOT NULL").count())
    // Not in four times as many: the other side's rows of the key are more than 1 % of all.
    assert(keys.map(k => (k.leftSalts, k.rightSalts)) === Seq((math.ceil(share * 5).toInt, 1)))
    assert(how(df) === "1 hot key: each has its rows divided in parts, on the left up to 2")
    val alone = checkSalted(left, right.where("k <> 3"), "k", "full")
    assert(salted(alone).head.salted.hot.map(_.leftSalts) === Seq(4 * 2))
    // Hot on both sides: a grid.
    val both = checkSalted(left.where("k = 3"), skewed(1, 200, hot = 4), "k", "full")
    val Seq(key) = salted(both).head.salted.hot
    assert(key.leftSalts > 1 && key.rightSalts > 1)
    assert(how(both).contains("on the left up to"))
    assert(how(both).contains("on the right up to"))
  }

  private def how(df: DataFrame): String =
    contents(df).collect { case TechniqueHint.Made(_, _, how, _) => how }.head

  test("without a hot key it is Spark's join unchanged", Slow) {
    val l = skewed(0, 100)
    for (how <- Seq("inner", "full")) {
      val df = check(l, right.where("k <> 9"), "k", how, Technique)
      assert(salted(df).isEmpty)
      assert(made(df) === Seq(Technique))
      assert(this.how(df).startsWith("no key is hot"))
    }
  }

  test("salts depend on row and task, and spread equal rows", Slow) {
    def cellsTwice(df: DataFrame): Seq[Map[Int, Int]] = {
      df.collect()
      Seq.fill(2)(cells(salted(df).head))
    }
    def join(l: DataFrame) = skewJoin(
      l,
      right,
      "k",
      "left",
      Technique,
      Map("salts" -> "4", "side" -> "left"),
      Seq(Seq(lit(3))))
    val hot = left.where("k = 3")
    // Nothing but the key is read.
    val Seq(counted, countedAgain) = cellsTwice(join(hot).groupBy("k").count())
    assert(counted === countedAgain)
    assert(counted.size === 4)
    assert(counted.values.max - counted.values.min <= 4)
    val Seq(hashed, hashedAgain) = cellsTwice(join(hot))
    assert(hashed === hashedAgain)
    assert(hashed.size === 4)
    assert(hashed.values.max < 2 * hashed.values.sum / 4)
  }

  test("spreads rows with a null in the key, or drops them if they cannot match", Slow) {
    val nulls = left.withColumn("k", when(col("v0") % 2 === 0, col("k")))
    def nullCells(how: String): Int = {
      val df = checkSalted(nulls, right, "k", how, Map("side" -> "left"), Hot)
      cells(salted(df).head).keys.count(_ < 0)
    }
    for (how <- Seq("left", "full", "left_anti")) assert(nullCells(how) === 5, how)
    for (how <- Seq("inner", "right", "left_semi")) assert(nullCells(how) === 0, how)
  }

  test("-0.0 and NaN are hot keys as in Spark's joins", Slow) {
    val l =
      table("k, v", "(-0.0D, 1), (0.0D, 2), (double('NaN'), 3), (null, 4), (7.0D, 5), (0.0D, 6)")
    val r = table("k, w", "(0.0D, 1), (double('NaN'), 2), (null, 3), (8.0D, 4), (-0.0D, 5)")
    val hot = Seq(lit(0.0), lit(Double.NaN), lit(8.0)).map(Seq(_))
    for (how <- Hows) checkSalted(l, r, "k", how, Map("side" -> "both", "salts" -> "2"), hot)
    val structs = (df: DataFrame) => df.withColumn("k", struct(col("k"), lit("x").as("s")))
    val hotStructs = Seq(0.0, Double.NaN, 8.0).map { k =>
      Seq(
        TestShims.column(
          Literal(InternalRow(k, UTF8String.fromString("x")), structs(l).schema("k").dataType)))
    }
    for (how <- Seq("full", "left_anti")) {
      checkSalted(structs(l), structs(r), "k", how, Map("side" -> "both"), hotStructs)
    }
  }

  test("inputs that are partitioned by the key are shuffled all the same") {
    val (l, r) = (left.repartition(3, col("k")), right.repartition(3, col("k")))
    val df = checkSalted(l, r, "k", "full", Map("salts" -> "3"), Hot)
    val byCell = exchanges(df).count(_.outputPartitioning.toString.contains("cell"))
    assert(byCell === 2)
  }

  test("keys of text, and rows of many columns") {
    val wide = (0 to 25).foldLeft(left)((df, i) => df.withColumn(s"c$i", col("v0") % (i + 2)))
    val text = (df: DataFrame) => df.withColumn("k", concat(lit("key"), col("k")))
    val hotText = Seq("key3", "key9", "key60").map(k => Seq(lit(k)))
    checkSalted(text(wide), text(right), "k", "full", Map("side" -> "both"), hotText)
  }

  test("conditions above go below the salts", Slow) {
    for (how <- Hows) {
      def above(df: DataFrame) =
        if (how.startsWith("left_")) df.where("k > 5 AND v0 > 10")
        else df.where("k > 5 AND v1 > 10")
      val df = above(skewJoin(left, right, "k", how, Technique, Map("salts" -> "3"), Hot))
      assertStock(df, above(stockJoin(left, right, "k", how)))
    }
    val (l, r) = (spark.range(90).selectExpr("id % 7 AS k"), spark.range(9).selectExpr("id AS k"))
    val df = skewJoin(l, r, "k", "inner", Technique, Map("salts" -> "3"), Hot).where("k > 5")
    val below = df.queryExecution.optimizedPlan.collect { case s: SaltKeys => s.child }
    assert(below.size === 2)
    below.foreach { side =>
      assert(
        side.exists { case f: Filter => f.condition.sql.contains("> 5"); case _ => false },
        side)
    }
    assert(!df.queryExecution.optimizedPlan.exists {
      case Filter(_, _: SaltKeys) => true
      case _ => false
    })
  }

  test("an equality above becomes a condition, and the hot keys stay those of the join", Slow) {
    def salts(df: DataFrame): Seq[Int] =
      df.queryExecution.optimizedPlan.collect { case s: SaltKeys => s.salted.hot.size }
    val options = Map("salts" -> "3")
    val composite = Seq(3 -> 0, 9 -> 1).map { case (k, j) => Seq(lit(k), lit(j)) }
    def above(df: DataFrame) = df.where("v0 % 10 = v1 % 10 AND v0 <=> v1")
    for (how <- Seq("inner", "left", "full"); found <- Seq(true, false)) {
      val df = above(skewJoin(left, right, "k", how, Technique, options, if (found) null else Hot))
      assertStock(df, above(stockJoin(left, right, "k", how)))
      assert(salts(df) === (if (found) Seq(1, 1) else Seq(5, 5)), refusals(df))
      assert(salted(df).head.keys.map(_.dataType) === Seq(LongType))
    }
    val two = above(skewJoin(left, right, Seq("k", "j"), "inner", Technique, options, composite))
    assertStock(two, above(stockJoin(left, right, Seq("k", "j"), "inner")))
    assert(salts(two) === Seq(2, 2), refusals(two))
    val auto = above(skewJoin(left, right, "k", "inner", "auto", Map.empty, Hot))
    assertStock(auto, above(stockJoin(left, right, "k", "inner")))
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      val auto = above(skewJoin(left, right, "k", "inner", "auto", Map.empty, Hot))
      assertStock(auto, above(stockJoin(left, right, "k", "inner")))
      assert(made(auto).distinct === Seq(Technique) && salts(auto) === Seq(5, 5))
    }
    withTempView("l", "r") {
      left.createOrReplaceTempView("l")
      right.createOrReplaceTempView("r")
      for ((hot, on) <- Seq(
          "3,9" -> "USING (k)",
          "3,9" -> "ON l.k = r.k AND l.k = r.k",
          "0,3;1,9" -> "ON l.j = r.j AND l.k <=> r.k")) {
        val from = s"FROM l JOIN r $on WHERE v0 % 10 = v1 % 10"
        val df = spark.sql(s"SELECT /*+ SKEWEXT_JOIN(l, salted, 'hot_keys=$hot') */ * $from")
        assertStock(df, spark.sql(s"SELECT * $from"))
        assert(salts(df) === Seq(2, 2), refusals(df))
        assert(isDivided(df))
      }
    }
  }

  test("a constant key column is refused where the hot keys have a value for it") {
    val one = left.withColumn("j", lit(1))
    val hot = Seq(Seq(lit(3), lit(1)), Seq(lit(9), lit(1)))
    val on = Seq("k", "j")
    val df = skewJoin(one, right, on, "inner", Technique, Map.empty, hot)
    assertStock(df, stockJoin(one, right, on, "inner"))
    assert(refusals(df) === Seq(TechniqueReason.ConstantKey))
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      val auto = skewJoin(one, right, on, "inner", "auto", Map.empty, hot)
      assertStock(auto, stockJoin(one, right, on, "inner"))
      assert(made(auto) === Seq("none"))
    }
    withTempView("l", "r") {
      one.createOrReplaceTempView("l")
      right.createOrReplaceTempView("r")
      val hinted = spark.sql(
        "SELECT /*+ SKEWEXT_JOIN(l, salted, 'hot_keys=3,1;9,1') */ * FROM l JOIN r USING (k, j)")
      assertStock(hinted, df)
      assert(refusals(hinted) === Seq(TechniqueReason.ConstantKey))
    }
  }

  test("a condition besides the key", Slow) {
    val (l, r) = (left.as("l"), right.as("r"))
    val more = col("l.k") === col("r.k") && col("l.v0") > col("r.v1")
    def options(side: String) = Map("side" -> side, "salts" -> "3")
    for ((how, side) <- Seq("inner" -> "both", "left" -> "left", "right" -> "right")) {
      checkSalted(l, r, more, how, options(side), Hot)
    }
    for ((how, side) <- Seq(
        "full" -> "left",
        "left" -> "right",
        "left_semi" -> "left",
        "left_anti" -> "left")) {
      val error =
        intercept[AnalysisException](skewJoin(l, r, more, how, Technique, options(side), Hot))
      assert(error.getMessage.contains(TechniqueReason.Condition.text))
    }
  }

  test("the same DataFrame on both sides, and a result that is joined with itself", Slow) {
    for (how <- Seq("full", "left_semi"))
      checkSalted(left, left, "k", how, Map("salts" -> "2"), Hot)
    val df = skewJoin(left, right, "k", "full", Technique, Map("salts" -> "3"), Hot)
    val stock = left.join(right, Seq("k"), "full")
    assertStock(
      df.join(df.groupBy("k").count(), "k").where("count > 3"),
      stock.join(stock.groupBy("k").count(), "k").where("count > 3"))
  }

  test("hot keys in a hint", Slow) {
    left.createOrReplaceTempView("l")
    right.createOrReplaceTempView("r")
    val df = spark.sql(
      "SELECT /*+ SKEWEXT_JOIN(l, salted, 'hot_keys=3,50', 'salts=4') */ * FROM l FULL JOIN r USING (k)")
    assertStock(df, spark.sql("SELECT * FROM l FULL JOIN r USING (k)"))
    assert(salted(df).map(_.salted.hot.size) === Seq(2, 2))
    // It takes a job to find them, which a hint does not run.
    val none = spark.sql("SELECT /*+ SKEWEXT_JOIN(l, salted) */ * FROM l FULL JOIN r USING (k)")
    assertStock(none, spark.sql("SELECT * FROM l FULL JOIN r USING (k)"))
    assert(salted(none).isEmpty && refusals(none) === Seq(TechniqueReason.WrongOption))
    val two = spark.sql(
      "SELECT /*+ SKEWEXT_JOIN(l, salted, 'hot_keys=3,0; 9,1') */ * FROM l JOIN r USING (k, j)")
    assertStock(two, spark.sql("SELECT * FROM l JOIN r USING (k, j)"))
    assert(salted(two).map(_.salted.hot.size) === Seq(2, 2))
  }

  test("hot keys of null-safe comparisons have one value for each column", Slow) {
    withTempView("l", "r") {
      left.createOrReplaceTempView("l")
      right.createOrReplaceTempView("r")
      def checkHint(hot: String, on: String, keys: Int): Unit = {
        val from = s"FROM l FULL JOIN r ON $on"
        val df =
          spark.sql(s"SELECT /*+ SKEWEXT_JOIN(l, salted, 'hot_keys=$hot', 'salts=4') */ * $from")
        assertStock(df, spark.sql(s"SELECT * $from"))
        assert(salted(df).map(_.salted.hot.size) === Seq(keys, keys), refusals(df))
        assert(isDivided(df))
      }
      checkHint("3,50", "l.k <=> r.k", 2)
      checkHint("3,0; 9,1", "l.k <=> r.k AND l.j = r.j", 2)
      checkHint("0,3; 1,9; 2,9", "l.j = r.j AND r.k <=> l.k", 3)
    }
    val (l, r) = (left, right)
    val nullSafe = l("k") <=> r("k")
    val given = Seq(Seq(lit(3)), Seq(lit(null)))
    for (how <- Seq("full", "left_anti")) {
      val options = Map("salts" -> "4", "side" -> "left")
      val df = checkSalted(l, r, nullSafe, how, options, given)
      val rows = l.where("k = 3 OR k IS NULL").count()
      assert(cells(salted(df).head).filter(_._1 > 0).values.sum > rows / 2)
    }
    // Found keys have a value for each of Spark's comparisons.
    checkSalted(l, r, nullSafe, "full")
    def error(hot: Column*): String = intercept[AnalysisException](
      skewJoin(l, r, nullSafe, "full", Technique, Map.empty, Seq(hot))).getMessage
    assert(error(lit("x")).contains("not a value of type BIGINT"))
    assert(error(lit(1), lit(2), lit(3)).contains("3 values, but the join compares 1 columns"))
  }

  test("rejects wrong options when called") {
    def error(options: Map[String, String], hot: Seq[Column]*): String =
      intercept[AnalysisException](
        skewJoin(left, right, "k", "full", Technique, options, hot)).getMessage
    assert(
      error(Map("salts" -> "1"), Seq(lit(3))).contains("salts must be a whole number between 2"))
    assert(error(Map("side" -> "top"), Seq(lit(3))).contains("one of left, right, both"))
    // The error does not depend on a hot key, or on the jobs that look for one.
    val even = spark.range(100).toDF("k")
    for ((name, value) <- Seq("salts" -> "1", "side" -> "top")) {
      val wrong = intercept[AnalysisException](
        skewJoin(even, even, "k", "inner", Technique, Map(name -> value)))
      assert(wrong.getMessage.contains(s"The option $name must be"))
    }
    assert(error(Map.empty, Seq(lit(3), lit(4))).contains("has 2 values, but the join compares 1"))
    assert(error(Map.empty, Seq(lit("x"))).contains("not a value of type BIGINT"))
    assert(error(Map.empty, Seq(lit(null))).contains("null"))
    assert(error(Map.empty, Seq(col("k"))).contains("hot key"))
    checkSalted(left, right, "k", "full", Map("salts" -> "2"), Hot)
  }

  /** Runs a join of which map tasks are lost when the first of its rows is seen. */
  private def checkLost(l: DataFrame, r: DataFrame, how: String)(
      shown: DataFrame => DataFrame): Unit = {
    val lost = new AtomicBoolean
    val df = skewJoin(l, r, "k", how, Technique, Map("salts" -> "3", "side" -> "both"), Hot)
    val watched = shown(df).withColumn("again", SaltedJoinSuite.watched(col("k")))
    SaltedJoinSuite.onRow = () =>
      if (lost.compareAndSet(false, true)) {
        SaltedJoinSuite.round.incrementAndGet()
        collect(watched.queryExecution.executedPlan) { case s: ShuffleQueryStageExec => s }
          .flatMap(_.mapStats)
          .foreach(stats => TestShuffles.loseLast(stats.shuffleId))
      }
    try {
      assertStock(watched, shown(left.join(r, Seq("k"), how)).withColumn("again", col("k")))
    } finally {
      SaltedJoinSuite.onRow = () => ()
    }
    assert(lost.get)
  }

  test("map tasks that are lost and write their rows in another order give no row twice", Slow) {
    val rows = left.collect().toSeq
    for (how <- Seq("full", "inner")) {
      val unordered = spark.sparkContext
        .parallelize(rows, 4)
        .mapPartitions(part => new Random(RandomSeed.next()).shuffle(part.toList).iterator)
      checkLost(spark.createDataFrame(unordered, left.schema), right, how)(identity)
    }
  }

  test("map tasks that are lost and write other values give no row twice", Slow) {
    for (how <- Seq("full", "inner")) {
      val renewed = left.repartition(4).withColumn("j", SaltedJoinSuite.changing(col("j")))
      withSQLConf(TestShuffles.OtherRowsAreNotSeen) {
        checkLost(renewed, right.drop("j"), how)(_.withColumn("j", col("j").isNotNull))
      }
    }
  }
}

object SaltedJoinSuite {
  @volatile var onRow: () => Unit = () => ()
  val round = new AtomicInteger

  /** Another value each time. */
  val changing: UserDefinedFunction =
    udf((v: Int) => v * 31 + round.get * 1009).asNondeterministic()
  val watched = udf { (k: java.lang.Long) =>
    if (TaskContext.get() != null) onRow()
    k
  }
}
