package io.github.skewext.skew

import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.{PartitionSplit, SkewReason}
import io.github.skewext.skew.run.KeySketchExec
import org.apache.spark.sql.skewext.TestShuffles

import org.scalacheck.Gen
import org.scalacheck.rng.Seed

import org.apache.spark.SparkEnv
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.{SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{DataFrame, Row}

/** Partitions that are small, and out of which much comes. */
class OutputSkewSuite extends SkewTest {

  private val Mode = SkewConf.SKEW_OUTPUT_MODE.key
  private val SampleEvery = SkewConf.SKEW_OUTPUT_SAMPLE_EVERY.key

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    // No partition has so many bytes, hot or not.
    spark.conf.set(Threshold, "60000")
    spark.conf.set(Advisory, "10000")
    spark.conf.set(SampleEvery, "1")
    spark.conf.set(Mode, SkewConf.OutputSkew.All)
  }

  private val Many = 90

  /** `hot` rows of key 3 among 200 of other keys; one of ten has none. */
  private def input(i: Int, hot: Int, maps: Int = 3): DataFrame = spark
    .range(0, 200 + hot, 1, maps)
    .select(
      when(col("id") < hot, lit(3L))
        .otherwise(when(col("id") % 10 =!= 0, col("id") + 100 * i))
        .as("k"),
      col("id").as(s"v$i"),
      md5((col("id") + i).cast("string").cast("binary")).as(s"s$i"))

  private def keyed(i: Int, hot: Int, key: String): DataFrame =
    input(i, hot).withColumnRenamed("k", key)

  private def sketches(plan: SparkPlan): Seq[KeySketchExec] = collectWithSubqueries(plan) {
    case sketch: KeySketchExec => sketch
  }

  private def sketches(df: DataFrame): Seq[KeySketchExec] = sketches(df.queryExecution.executedPlan)

  /** It was split, and for its output. */
  private def checkSplitByOutput(df: DataFrame): PartitionSplit = {
    val join = checkSplit(df)
    assert(join.splits.partitions.size === 1)
    assert(join.splits.partitions.head.byOutput)
    assert(join.nodeName.contains("1 partition, 1 for its output, in "))
    assert(join.metrics("numOutputSkewed").value === 1)
    join.splits.partitions.head
  }

  private def checkedSplit(df: DataFrame): DataFrame = {
    checkSplitByOutput(df)
    df
  }

  test("rows of all branches of a union are sampled") {
    // Spark 4.2 can run the branches in the generated code of one stage, and 4.3 does so.
    withSQLConf("spark.sql.codegen.wholeStage.union.enabled" -> "true") {
      inGeneratedCode {
        val both = keyed(0, 0, "l").union(keyed(0, Many, "l"))
        checkSplitByOutput(
          both.join(keyed(1, Many, "r").hint("merge"), col("l") === col("r"), "full"))
      }
    }
  }

  test("many rows of a key on both sides of Spark's joins", Slow) {
    for ((how, hint) <- Seq("full", "left").map(_ -> "merge") ++
        Seq("right", "inner").map(_ -> "shuffle_hash")) {
      withClue(s"$how $hint: ") {
        val df =
          keyed(0, Many, "l").join(keyed(1, Many, "r").hint(hint), col("l") === col("r"), how)
        val split = checkSplitByOutput(df)
        assert(split.slices.size > 3)
        assert(splitJoins(df).head.metrics("numPieceRows").value >= Many * Many)
      }
    }
  }

  test("many rows of a key in two of three inputs of the multi-way join", Slow) {
    for (roles <- Seq(
        Seq("optional", "optional", "optional"),
        Seq("required", "required", "optional"))) {
      val cold = input(2, 0).where("k != 3 OR k IS NULL")
      val split = checkSplitByOutput(
        multiJoin(Seq(input(0, Many), input(1, Many), cold), Seq("k"), roles = roles))
      assert(Set(0, 1).contains(split.input))
    }
    // The key has rows in the excluded input: nothing comes out, but that is not known.
    val none =
      multiJoin(
        Seq(input(0, Many), input(1, Many), input(2, 9)),
        Seq("k"),
        roles = Seq("required", "optional", "excluded"))
    checkSplitByOutput(none)
  }

  test("each piece gives its part of the rows") {
    val df = fullJoin("k")(input(0, Many), input(1, Many))
      .select(spark_partition_id().as("p"), col("k"), col("v0") + col("v1"))
    val hot = df.collect().filter(row => !row.isNullAt(1) && row.getLong(1) == 3)
    assert(splitJoins(df).size === 1)
    assert(hot.length === Many * Many)
    // About a third each: rows are divided by what is in them.
    assert(hot.groupBy(_.getInt(0)).values.map(_.length).max < Many * Many / 2)
  }

  test("slices the input whose rows can be distinguished", Slow) {
    // By its size it would be either.
    val rows = checkSplitByOutput(fullJoin("k")(input(0, Many).select("k"), input(1, Many)))
    assert(rows.input === 1)
    assert(rows.slices.forall(_.shares > 1))
    // Where all look alike, by what map tasks wrote.
    def keys(i: Int, maps: Int) = spark
      .range(0, 1200, 1, maps)
      .select(when(col("id") % 6 === 0, lit(3L)).otherwise(col("id") + i).as("k"))
    val split = checkSplitByOutput(fullJoin("k")(keys(0, 5), keys(10, 5)))
    assert(split.slices.size > 1 && split.slices.forall(_.shares == 1))
    val cold = input(2, 0).where("k != 3")
    val one = fullJoin("k")(keys(0, 1), keys(10, 1), cold)
    checkWhole(one)
    assert(reasons(one) === Seq(SkewReason.OneBlock))
  }

  test("a partition that is skewed in bytes and in output", Slow) {
    withSQLConf(Threshold -> "8000", Advisory -> "6000", SkewConf.SKEW_MIN_GAIN.key -> "1") {
      val join = checkSplit(fullJoin("k")(input(0, Many), input(1, 40)))
      val withOutput = join.splits
      assert(withOutput.splitByOutput === 0)
      withSQLConf(Mode -> SkewConf.OutputSkew.Off) {
        val bytesOnly = checkSplit(fullJoin("k")(input(0, Many), input(1, 40))).splits
        assert(withOutput.pieces > bytesOnly.pieces)
      }
    }
  }

  test("no key is hot in two inputs", Slow) {
    for ((left, right) <- Seq((Many, 0), (Many, 6))) {
      for (df <- Seq(
          fullJoin("k")(input(0, left), input(1, right)),
          keyed(0, left, "l").join(keyed(1, right, "r"), col("l") === col("r"), "full"))) {
        checkWhole(df)
        assert(reasons(df) === Seq(SkewReason.NotSkewed))
        assert(sketches(df).size === 2)
      }
    }
  }

  test("rows with a null key are no output, however many there are on both sides", Slow) {
    for (spread <- Seq("true", "false")) {
      withSQLConf(SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key -> spread) {
        def nulls(i: Int) = input(i, Many).withColumn("k", when(col("k") =!= 3, col("k")))
        for (df <- Seq(
            fullJoin("k")(nulls(0), nulls(1)),
            nulls(0).withColumnRenamed("k", "l").join(nulls(1), col("l") === col("k"), "full"))) {
          checkWhole(df)
          assert(reasons(df) === Seq(SkewReason.NotSkewed))
        }
      }
    }
  }

  test("keys that are compared as equal are counted as one", Slow) {
    def doubles(i: Int, zero: Double) =
      input(i, Many).withColumn("k", when(col("k") === 3, zero).otherwise(col("k").cast("double")))
    for (df <- Seq(
        fullJoin("k")(doubles(0, -0.0), doubles(1, 0.0)),
        doubles(0, -0.0)
          .withColumnRenamed("k", "l")
          .join(doubles(1, 0.0), col("l") === col("k"), "full"))) {
      checkSplitByOutput(df)
    }
    val both = Seq(input(0, Many), input(1, Many)).map(_.withColumn("j", col("k") % 7))
    checkSplitByOutput(multiJoin(both, Seq("j", "k")))
  }

  test("does not split below an operator that needs a key in one task", Slow) {
    val df = fullJoin("k")(input(0, Many), input(1, Many)).groupBy("k").agg(count("*"), max("v0"))
    checkWhole(df)
    assert(reasons(df) === Seq(SkewReason.KeysTogether))
    val repartitioned = fullJoin("k")(input(0, Many), input(1, Many)).repartition(col("k"))
    checkWhole(repartitioned)
    // Known before, so nothing is counted.
    assert(sketches(repartitioned).isEmpty)
  }

  test("nothing is counted where it would be of no use, or is switched off", Slow) {
    def hot = fullJoin("k")(input(0, Many), input(1, Many))
    for (off <- Seq(
        Mode -> SkewConf.OutputSkew.Off,
        SkewConf.SKEW_ENABLED.key -> "false",
        "spark.sql.adaptive.skewJoin.enabled" -> "false",
        "spark.sql.adaptive.enabled" -> "false")) {
      withSQLConf(off) {
        val df = hot
        checkWhole(df)
        assert(sketches(df).isEmpty)
      }
    }
    val sparkConf = SparkEnv.get.conf
    sparkConf.set("spark.plugins", "org.apache.gluten.GlutenPlugin")
    try {
      val df = hot
      checkWhole(df)
      assert(sketches(df).isEmpty)
    } finally sparkConf.remove("spark.plugins")
    checkSplitByOutput(hot)
    val (l, r) = (keyed(0, Many, "l"), keyed(1, Many, "r"))
    for ((df, counted) <- Seq(
        // Only one side gives rows, but there may be many of a key on either.
        l.join(r, col("l") === col("r"), "anti") -> 2,
        l.join(r, col("l") === col("r"), "semi") -> 2,
        // Each key once on one side.
        l.join(r.groupBy("r").agg(max("v1")), col("l") === col("r"), "full") -> 1,
        // This join cannot be split.
        l.join(r, col("l") === col("r") && col("v0") < col("v1"), "full") -> 0,
        // No join at all.
        l.groupBy("l").count() -> 0,
        l.repartition(col("l")) -> 0)) {
      checkWhole(df)
      assert(sketches(df).size === counted, df.queryExecution.executedPlan)
    }
  }

  test("splits Spark's own joins only on request") {
    withSQLConf(Mode -> SkewConf.OutputSkew.MultiJoin) {
      val own = keyed(0, Many, "l").join(keyed(1, Many, "r"), col("l") === col("r"), "full")
      checkWhole(own)
      assert(sketches(own).isEmpty)
      assert(reasons(own) === Seq(SkewReason.NotSkewed))
      val ours = fullJoin("k")(input(0, Many), input(1, Many))
      // A join of ours below one of Spark's.
      val above = ours.join(keyed(2, 0, "r"), col("v0") === col("r"))
      checkSplitByOutput(above)
      assert(sketches(above).size === 2)
    }
    assert(SkewConf.SKEW_OUTPUT_MODE.defaultValue === Some(SkewConf.OutputSkew.MultiJoin))
  }

  test("more counters than there may be: keys are not counted, and that is the reason") {
    val df = fullJoin("k")(input(0, Many, maps = 2), input(1, Many, maps = 2))
    var rows: Seq[Row] = Nil
    withSQLConf("spark.sql.shuffle.partitions" -> "8200") {
      rows = df.collect().toSeq
    }
    // With the usual partitions: without adaptive execution each is a task.
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    assert(splitJoins(df).isEmpty)
    assert(sketches(df).size === 2)
    assert(reasons(df) === Seq(SkewReason.KeysNotCounted))
  }

  test("several joins on one key in one stage") {
    val df = keyed(0, Many, "a")
      .join(keyed(1, Many, "b"), col("a") === col("b"))
      .join(keyed(2, 0, "c"), col("a") === col("c"), "left")
    checkSplitByOutput(df)
    assert(sketches(df).size === 3)
  }

  test("the plan is otherwise the same: generated code below, shuffles that are used again", Slow) {
    val df = fullJoin("k")(input(0, Many), input(1, Many))
    inGeneratedCode {
      checkSplitByOutput(df)
      assert(exchanges(df).forall(_.child match {
        case WholeStageCodegenExec(_: KeySketchExec) => true
        case _ => false
      }))
    }
    assert(sketches(df).map(_.metrics("numSampledRows").value) === Seq(200 + Many, 200 + Many))
    withSQLConf("spark.sql.codegen.wholeStage" -> "false") {
      val plain = again(df)
      checkSplitByOutput(plain)
      assert(exchanges(plain).forall(_.child.isInstanceOf[KeySketchExec]))
      assert(
        sketches(plain).map(_.sketch.get.counts.toSeq) ===
          sketches(df).map(_.sketch.get.counts.toSeq))
    }
    // Rows of a join of ours, and of one of Spark's.
    for (joined <- Seq(
        fullJoin("k")(input(0, Many), input(2, 1)),
        input(0, Many).join(input(2, 1), Seq("k"), "left"))) {
      val next = joined.select(abs(col("k")) as "k", col("v0"), col("s0"))
      assert(sketches(checkedSplit(fullJoin("k")(next, input(1, Many)))).size === 4)
    }
    def reused(df: DataFrame): Int = {
      df.collect()
      collectWithSubqueries(df.queryExecution.executedPlan) { case r: ReusedExchangeExec => r }.size
    }
    val a = input(0, Many)
    def queries = Seq(
      fullJoin("k")(a, input(1, 0), a.withColumnRenamed("v0", "w0")),
      // Once below a join, and once where nothing is counted.
      fullJoin("k")(a, input(1, 0)).select("v0").union(a.repartition(5, col("k")).select("v0")))
    withSQLConf("spark.sql.adaptive.coalescePartitions.enabled" -> "false") {
      val on = queries.map(reused)
      withSQLConf(Mode -> SkewConf.OutputSkew.Off) {
        assert(on === queries.map(reused))
      }
      assert(on.head === 1)
    }
  }

  test("map tasks that run again are counted once") {
    val df = fullJoin("k")(input(0, Many, maps = 4), input(1, Many))
    checkSplitByOutput(df)
    val stage = collect(df.queryExecution.executedPlan) {
      case s: ShuffleQueryStageExec if s.shuffle.numMappers == 4 => s
    }.head
    val counted = sketches(stage.plan).head
    val before = counted.sketch.get.counts.toSeq
    TestShuffles.lose(stage.mapStats.get.shuffleId)
    assert(stage.execute().count() === 200 + Many)
    assert(counted.metrics("numSampledRows").value === 2 * (200 + Many))
    assert(counted.sketch.get.counts.toSeq === before)
  }

  test("one row in several is counted, and another one in each map task") {
    withSQLConf(SampleEvery -> "4") {
      val df = fullJoin("k")(input(0, Many), input(1, Many))
      checkSplitByOutput(df)
      sketches(df).foreach { s =>
        assert(s.metrics("numSampledRows").value > 40 && s.metrics("numSampledRows").value < 140)
      }
    }
  }

  test("random joins, split for their output", Slow) {
    val cases = for {
      n <- Gen.choose(2, 3)
      hot <- Gen.listOfN(n, Gen.oneOf(0, 40, 120))
      maps <- Gen.listOfN(n, Gen.oneOf(1, 3))
      alike <- Gen.listOfN(n, Gen.frequency(4 -> false, 1 -> true))
      roles <- Gen.oneOf(
        Gen.const(List.fill(n)("optional")),
        Gen.listOfN(n - 1, Gen.oneOf("optional", "required", "excluded")).map("optional" :: _))
      advisory <- Gen.oneOf("3000", "20000")
    } yield {
      // The product of three is more than there is to learn from.
      val few = if (n == 3) hot.updated(2, math.min(1, hot(2))) else hot
      val inputs = few.indices.map { i =>
        val all = input(i, few(i), maps(i))
        if (alike(i)) all.select("k") else all
      }
      (inputs, roles, advisory)
    }
    checkSplits(runs = 8, wanted = 1) { seed =>
      val (inputs, roles, advisory) = cases.pureApply(Gen.Parameters.default, Seed(seed))
      withClue(s"seed $seed, $roles: ") {
        var fired = false
        withSQLConf(Threshold -> "20000", Advisory -> advisory) {
          val df = multiJoin(inputs, Seq("k"), roles = roles)
          checkJoin(df)
          fired = splitJoins(df).exists(_.splits.splitByOutput > 0)
        }
        fired
      }
    }
  }
}
