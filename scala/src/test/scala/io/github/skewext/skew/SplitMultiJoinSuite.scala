package io.github.skewext.skew

import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.SkewReason
import org.scalacheck.Gen
import org.scalacheck.rng.Seed

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.functions._

/** Skewed partitions of the multi-way join. */
class SplitMultiJoinSuite extends SkewTest {

  test("a hot key in one of N inputs", Slow) {
    for (n <- Seq(2, 3, 5)) {
      val join = checkSplit(fullJoin("k")(hotFirst(n): _*))
      assert(join.splits.partitions.forall(s => s.input == 0 && s.residual))
      assert(join.outputPartitioning.isInstanceOf[UnknownPartitioning])
      assert(join.metrics("numPieceRows").value > 0)
      assert(join.metrics("numResidualRows").value > 0)
      assert(join.metrics("rereadSize").value > 0)
    }
  }

  test("null keys of several inputs are divided in all of them", Slow) {
    // Not where nothing is asked of partitions: then they would not come together at all.
    withSQLConf(SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key -> "false") {
      def nulls(i: Int, rows: Int) = skewed(i, rows)
        .withColumn("k", when(col(s"v$i") % 20 === 0, col("k")).otherwise(lit(null)))
      for (indicator <- Seq(null, "i")) {
        val df = multiJoin(
          Seq(nulls(0, 2400), nulls(1, 400), nulls(2, 300)),
          Seq("k"),
          indicator = indicator)
        val join = checkSplit(df)
        assert(join.splits.residuals > 0 && join.splits.partitions.forall(_.input == 0))
        val byTask =
          df.rdd.mapPartitions(rows => Iterator(rows.count(_.isNullAt(0)))).collect().toSeq
        assert(byTask.max < byTask.sum / 3, byTask)
        // Those that have no row of the sliced input, too.
        val ofOthers = df.rdd
          .mapPartitions(rows => Iterator(rows.count(r => r.isNullAt(0) && r.isNullAt(1))))
          .collect()
        assert(ofOthers.count(_ > 0) > 3 && ofOthers.max < ofOthers.sum / 2, ofOthers.toSeq)
      }
      // By what is in them, and so not where that may be another value when a task runs again.
      val random = nulls(1, 400).withColumn("v1", col("v1") + (rand() * 0).cast("long"))
      val join = checkSplit(fullJoin("k")(nulls(0, 2400), random))
      assert(join.splits.residuals > 0 && !join.splits.partitions.exists(_.dividesNullKeys))
    }
  }

  test("joins of Spark's above it, by the same key, are divided with it", Slow) {
    def multi = fullJoin("k")(hotFirst(3): _*)
    val few = skewed(7, 40).withColumnRenamed("k", "kk")
    val hints = Seq("merge", "shuffle_hash")
    val cases =
      for (how <- Seq("inner", "left", "left_semi", "left_anti"); hint <- hints) yield (how, hint)
    for ((how, hint) <- some(3, cases))
      withClue(s"$how, $hint: ") {
        val df = multi.join(few.hint(hint), col("k") === col("kk"), how)
        checkSplit(df)
        val above = collect(df.queryExecution.executedPlan) { case j: ShuffledJoin => j }
        assert(above.size === 1 && above.head.isSkewJoin)
      }
    checkSplit(few.join(multi, col("k") === col("kk"), "right"))
    checkSplit(
      multi
        .join(few, col("k") === col("kk") && col("v0") % 2 === col("v7") % 2, "left")
        .join(skewed(8, 40).withColumnRenamed("k", "k8"), col("k") === col("k8"), "left"))
    // Not where a row of this side must meet all of it, or something above needs the partitions.
    for (how <- Seq("right", "full")) {
      checkWhole(multi.join(few, col("k") === col("kk"), how))
    }
    val grouped = multi.join(few, col("k") === col("kk"), "left").groupBy("k").count()
    checkWhole(grouped)
    assert(reasons(grouped).contains(SkewReason.KeysTogether))
    checkWhole(multi.join(few, col("k") === col("kk"), "left").repartition(col("k")))
    // The other side would be read too often.
    withSQLConf(SkewConf.SKEW_MAX_REREAD_FACTOR.key -> "1.05") {
      checkWhole(
        multi.join(skewed(7, 400).withColumnRenamed("k", "kk"), col("k") === col("kk"), "left"))
    }
  }

  test("every role of the skewed input, and of the others", Slow) {
    val inputs = Seq(skewed(0, 60), skewed(1, 800, hot = 2), skewed(2, 60))
    val roles = Seq("optional", "required", "excluded")
    val cases = for (a <- roles; b <- roles; c <- roles) yield (a, b, c)
    for ((a, b, c) <- some(10, cases) if Set(a, b, c) != Set("excluded"))
      withClue(s"$a $b $c: ") {
        val split = checkSplit(multiJoin(inputs, Seq("k"), roles = Seq(a, b, c))).splits
        if (b == "excluded") assert(split.pieces === 0)
        assert((split.residuals > 0) === (b match {
          case "required" => false
          case "optional" => a != "excluded" || c != "excluded"
          case _ => true
        }))
      }
  }

  test("the keys of a skewed input are marked before the join", Slow) {
    // So many slices that to read the input for the residual would take longest.
    def inputs = Seq(skewed(0, 20), skewed(1, 3000, hot = 3, maps = 12), skewed(2, 20))
    val cases = for {
      roles <- Seq("optional optional", "required optional", "excluded required")
      hot <- Seq("optional", "excluded")
    } yield (roles, hot)
    for ((roles, hot) <- covering(cases)) {
      val all = roles.split(" ").patch(1, Seq(hot), 0).toSeq
      withClue(s"$all: ") {
        val join = checkSplit(multiJoin(inputs, Seq("k"), roles = all))
        val splits = join.splits
        assert(splits.markingTasks > splits.partitions.size)
        // Pieces read it once, residuals never; a quarter of its rows is in whole partitions.
        assert(join.metrics("numRowsOfInput1").value <= (if (hot == "excluded") 750 else 3000))
      }
    }
    withSQLConf(SkewConf.SKEW_MARKING.key -> "false") {
      val join = checkSplit(fullJoin("k")(inputs: _*))
      assert(join.splits.markingTasks === 0)
      assert(join.metrics("markTime").value === 0)
      assert(join.metrics("numRowsOfInput1").value > 3000)
    }
    // Keys that are not told apart by their hashes are compared as without marks.
    for (bits <- Seq("0", "3")) {
      withSQLConf(SkewConf.MULTI_JOIN_HASH_BITS.key -> bits) {
        val join = checkSplit(fullJoin("k")(inputs: _*))
        assert(join.splits.markingTasks > 0)
      }
    }
  }

  test("two skewed inputs, in one partition and in several") {
    val other =
      skewed(1, 700, hot = 3).withColumn("k", when(col("k") === 3, 8).otherwise(col("k")))
    for (second <- Seq(skewed(1, 260, hot = 1), other)) {
      val tags = second.select(col("k"), col("v1"), col("s1"))
      withSQLConf(SkewConf.SKEW_MIN_GAIN.key -> "1") {
        val df = fullJoin("k")(skewed(0, 400, hot = 1), tags, skewed(2, 20))
          .select("k", "v0", "v1", "v2")
        val partitions = checkSplit(df).splits.partitions.map(_.partition)
        assert(partitions.distinct.size === partitions.size)
      }
    }
  }

  test("all of the input was written by one map task") {
    val inputs = Seq(skewed(0, 800, hot = 2, maps = 1), skewed(1, 60), skewed(2, 60))
    val join = checkSplit(fullJoin("k")(inputs: _*))
    assert(join.splits.partitions.flatMap(_.slices).forall(_.shares > 1))
  }

  test("a block is not cut where its rows look alike, or may look different the next time") {
    val alike = fullJoin("k")(skewed(0, 800, hot = 2, maps = 1).select("k"), skewed(1, 60))
    checkWhole(alike)
    assert(reasons(alike) === Seq(SkewReason.OneBlock))
    val text = s"not split: ${SkewReason.OneBlock.text}"
    assert(alike.queryExecution.executedPlan.toString.contains(text))
    // The first of a group may be another one when the map task runs again.
    val firsts = skewed(0, 800, hot = 2, maps = 1)
      .groupBy(col("v0"))
      .agg(first("k").as("k"), first("s0").as("s0"))
      .coalesce(1)
    def left(first: DataFrame) =
      multiJoin(Seq(first, skewed(1, 60)), Seq("k"), roles = Seq("required", "optional"))
    // As may all rows of an RDD.
    val rdd = spark.createDataFrame(firsts.rdd.coalesce(1), firsts.schema)
    for (hot <- Seq(firsts, rdd)) {
      val unstable = left(hot)
      checkWhole(unstable)
      assert(reasons(unstable) === Seq(SkewReason.OneBlock))
    }
    checkSplit(left(skewed(0, 800, hot = 2, maps = 1)))
  }

  test("a residual only where all inputs have the same rows each time", Slow) {
    val hot = skewed(0, 800, hot = 2)
    val rdd = spark.createDataFrame(hot.rdd, hot.schema)
    val other = skewed(1, 60)
    def dropped(df: DataFrame) = df.where(rand(3) < 0.99)
    for ((a, b) <- Seq((rdd, other), (dropped(hot), other), (hot, dropped(other)))) {
      val df = fullJoin("k")(a, b)
      checkWhole(df)
      assert(reasons(df) === Seq(SkewReason.NotStable))
      // Each row of the one is in one piece, which shows its matches whatever they are.
      val split = checkSplit(multiJoin(Seq(a, b), Seq("k"), roles = Seq("required", "optional")))
      val slices = split.splits.partitions.flatMap(_.slices)
      assert((a eq hot) || slices.forall(_.shares == 1))
    }
    checkSplit(fullJoin("k")(hot, other))
  }

  test("null keys: spread, or in the pieces") {
    val nulls = skewed(0, 800).withColumn("k", when(col("v0") % 4 === 0, col("k")))
    for (spread <- Seq("true", "false")) {
      withSQLConf(SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key -> spread) {
        val df = fullJoin("k")(nulls, skewed(1, 60))
        if (spread == "false") {
          val join = checkSplit(df)
          assert(join.metrics("numPieceRows").value > 500)
        } else {
          assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
        }
      }
    }
  }

  test("the indicator, several key columns, floating-point keys") {
    def keys(df: DataFrame) = {
      val double = when(col("k") % 2 === 0, -0.0)
        .otherwise(when(col("k") === 3, Double.NaN).otherwise(0.0))
      df.withColumn("a", double).withColumnRenamed("k", "b")
    }
    val inputs = Seq(skewed(0, 800, hot = 2), skewed(1, 60), skewed(2, 60)).map(keys)
    checkSplit(multiJoin(inputs, Seq("a", "b"), indicator = "sources"))
  }

  test("collisions of hashes, and no memory for hash tables") {
    for (conf <- Seq(
        SkewConf.MULTI_JOIN_HASH_BITS.key -> "1",
        SkewConf.MULTI_JOIN_GROUPING.key -> "sort",
        SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key -> "7")) {
      withSQLConf(conf) {
        checkSplit(fullJoin("k")(hotFirst(3): _*))
      }
    }
  }

  test("switched off, in part or all") {
    def df = fullJoin("k")(hotFirst(2): _*)
    for (key <- Seq(
        SkewConf.SKEW_ENABLED.key,
        "spark.sql.adaptive.skewJoin.enabled",
        "spark.sql.adaptive.enabled")) {
      withSQLConf(key -> "false") {
        checkWhole(df)
      }
    }
    withSQLConf(SkewConf.SKEW_MIN_GAIN.key -> "1000") {
      val left = df
      checkWhole(left)
      assert(reasons(left) === Seq(SkewReason.LittleGain))
    }
    withSQLConf(Threshold -> "1g") {
      val even = df
      checkWhole(even)
      assert(reasons(even) === Seq(SkewReason.NotSkewed))
      assert(!even.queryExecution.executedPlan.toString.contains("not split"))
    }
  }

  test("random joins, split", Slow) {
    val cases = for {
      n <- Gen.choose(2, 4)
      sizes <- Gen.listOfN(n, Gen.oneOf(0, 30, 60, 300))
      hot <- Gen.listOfN(n, Gen.oneOf(0, 0, 1, 2))
      maps <- Gen.listOfN(n, Gen.oneOf(1, 3))
      roles <- Gen.oneOf(
        Gen.const(List.fill(n)("optional")),
        Gen.listOfN(n - 1, Gen.oneOf("optional", "required", "excluded")).map("optional" :: _))
      hotInput <- Gen.choose(0, n - 1)
      advisory <- Gen.oneOf("300", "1000")
      marking <- Gen.oneOf("true", "true", "false")
      bits <- Gen.oneOf("64", "1")
      spread <- Gen.oneOf("true", "false")
    } yield {
      // The product of several hot inputs is not what is tested, and would take all the time.
      var product = 250
      val inputs = sizes.indices.map { i =>
        def ofHotKey(rows: Int, hot: Int): Int = math.max(1, rows * hot / 4 + rows / 40)
        val (rows, share) =
          if (i == hotInput) (500, 2)
          else
            Seq((sizes(i), hot(i)), (sizes(i), 0))
              .find { case (rows, hot) => product * ofHotKey(rows, hot) <= 20000 }
              .getOrElse((30, 0))
        if (i != hotInput) product *= ofHotKey(rows, share)
        skewed(i, rows, share, maps = maps(i))
      }
      (
        inputs,
        roles,
        KeepEmptyInputs ++ Seq(
          Advisory -> advisory,
          SkewConf.SKEW_MARKING.key -> marking,
          SkewConf.MULTI_JOIN_HASH_BITS.key -> bits,
          SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key -> spread))
    }
    val runs = if (testAll) 25 else 10
    checkSplits(runs, wanted = runs / 2) { seed =>
      val (inputs, roles, conf) = cases.pureApply(Gen.Parameters.default, Seed(seed))
      withClue(s"seed $seed, roles $roles, $conf: ") {
        var fired = false
        withSQLConf(conf ++ (if (seed % 2 == 0) GeneratedCode else Nil): _*) {
          val df = multiJoin(inputs, Seq("k"), roles = roles)
          checkJoin(df)
          fired = splitJoins(df).nonEmpty
        }
        fired
      }
    }
  }
}
