package io.github.skewext.skew

import io.github.skewext.bucket.files.SlicedBucketsExec
import io.github.skewext.explain.{ExplainedSkew, Explainer}
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.{SkewReason, Slice}
import io.github.skewext.skew.run.SplitJoinExec

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec, ShufflePartitionSpec, SortExec}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.SqlInternals

/** Joins of bucketed tables, which have no shuffles: large buckets are read in slices. */
class SplitBucketsSuite extends SkewTest {

  private val Buckets = 4
  private val Files = 4

  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set("spark.sql.parquet.compression.codec", "uncompressed")
      .set("spark.sql.orc.compression.codec", "uncompressed")
      .set("spark.sql.sources.parallelPartitionDiscovery.threshold", "10000")
      // Compiling takes longer than running such queries; see `compiled`.
      .set("spark.sql.codegen.wholeStage", "false")
      .set("spark.sql.codegen.factoryMode", "NO_CODEGEN")

  private def compiled(f: => Unit): Unit =
    withSQLConf(
      "spark.sql.codegen.wholeStage" -> "true",
      "spark.sql.codegen.factoryMode" -> "FALLBACK")(f)

  /** A file of each task in each bucket; with `maps` = 1 one sorted file, as `write_bucketed` has it. */
  private def write(
      df: DataFrame,
      name: String,
      buckets: Int = Buckets,
      format: String = "parquet",
      options: Map[String, String] = Map.empty): Unit = {
    val writer = df.write.format(format).options(options).bucketBy(buckets, "k")
    (if (df.rdd.getNumPartitions == 1) writer.sortBy("k") else writer).saveAsTable(name)
  }

  /** Row groups of a hundred rows or so. */
  private val SmallGroups = Map("parquet.block.size" -> "2048", "parquet.page.size" -> "512")

  private def tableOf(i: Int, rows: Int, hot: Int = 0, maps: Int = Files): DataFrame =
    skewed(i, rows, hot, maps = maps)

  /** With two rows of a key, so that joins with it give few. */
  private def pairs(i: Int, maps: Int): DataFrame = skewed(i, 200, keys = 100, maps = maps)

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    // What is gained depends on how many files and row groups so little data is in.
    Seq(Threshold -> "24000", Advisory -> "12000", SkewConf.SKEW_MIN_GAIN.key -> "1.0").foreach {
      case (key, value) => spark.conf.set(key, value)
    }
    write(tableOf(0, 2000, hot = 2), "hot")
    write(pairs(1, maps = 2), "b")
    write(pairs(2, maps = 2), "c")
    // Sorted, one file a bucket; of several row groups, or one.
    write(tableOf(0, 2000, hot = 2, maps = 1), "hotgroups", options = SmallGroups)
    write(tableOf(0, 2000, hot = 2, maps = 1), "hotfile")
    write(pairs(1, maps = 1), "sorted1")
    write(pairs(2, maps = 1), "sorted2")
  }

  override protected def afterAll(): Unit =
    try {
      Seq("hot", "b", "c", "hotgroups", "hotfile", "sorted1", "sorted2").foreach { name =>
        spark.sql(s"DROP TABLE IF EXISTS $name")
      }
    } finally {
      super.afterAll()
    }

  private def t(name: String): DataFrame = spark.table(name)

  private def reads(join: SplitJoinExec): Seq[SlicedBucketsExec] =
    collect(join) { case read: SlicedBucketsExec => read }

  private def slices(join: SplitJoinExec): Seq[Slice] =
    join.splits.partitions.flatMap(_.slices)

  private def explained(df: DataFrame): Seq[ExplainedSkew] =
    SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution)).joins.flatMap(_.skew)

  /** Nothing is shuffled, and each of the inputs is read by the bucket. */
  private def checkSplitBuckets(df: DataFrame): SplitJoinExec = {
    val join = checkSplit(df)
    assert(exchanges(df).isEmpty, df.queryExecution.executedPlan)
    assert(reads(join).size === join.children.size)
    join
  }

  test("files as slices: joins of all types, the skew on either side", Slow) {
    for (how <- Seq("inner", "left", "left_semi", "left_anti")) withClue(s"$how: ") {
      checkSplitBuckets(t("hot").join(t("b"), Seq("k"), how))
    }
    val join = checkSplitBuckets(t("b").join(t("hot"), Seq("k"), "full"))
    assert(slices(join).size > 1 && slices(join).forall(_.shares == 1))
    assert(slices(join).map(s => (s.startMap, s.endMap)).distinct.size === slices(join).size)
    // Of these only the keys are read, which are a small part of the files.
    withSQLConf(Threshold -> "6000", Advisory -> "3000") {
      for (how <- Seq("left_semi", "left_anti")) withClue(s"$how: ") {
        checkSplitBuckets(t("b").join(t("hot"), Seq("k"), how))
      }
    }
    compiled {
      checkSplitBuckets(t("hot").where("v0 % 5 > 0").join(t("b"), Seq("k"), "full"))
      checkSplitBuckets(
        t("hot")
          .join(t("b").hint("shuffle_hash"), Seq("k"), "left")
          .select(col("s0"), col("v0") + col("v1")))
    }
  }

  test("joins of N inputs, in any roles; two skewed inputs", Slow) {
    val inputs = Seq(t("hot"), t("b"), t("c"))
    checkSplitBuckets(fullJoin("k")(inputs: _*))
    checkSplitBuckets(multiJoin(inputs, Seq("k"), roles = Seq("optional", "required", "optional")))
    withSQLConf(Threshold -> "6000", Advisory -> "3000") {
      checkSplitBuckets(
        multiJoin(inputs, Seq("k"), roles = Seq("excluded", "optional", "optional")))
    }
    withTable("hot2") {
      // Another key, in another bucket.
      val other = tableOf(1, 2000, hot = 1)
      write(other.withColumn("k", when(col("k") === 3, lit(48L)).otherwise(col("k"))), "hot2")
      withSQLConf(Threshold -> "18000", Factor -> "1.2") {
        val join = checkSplitBuckets(t("hot").join(t("hot2"), Seq("k"), "full"))
        assert(join.splits.partitions.map(_.input).toSet === Set(0, 1))
      }
    }
  }

  test("sorted files are merged also where they are read in row groups", Slow) {
    withTable("orcgroups") {
      val stripes = Map("orc.stripe.size" -> "4096", "orc.rows.between.memory.checks" -> "100")
      // A stripe has a thousand rows at least.
      write(tableOf(0, 4000, hot = 3, maps = 1), "orcgroups", format = "orc", options = stripes)
      for (hot <- Seq("hotgroups", "orcgroups")) withClue(s"$hot: ") {
        val multi =
          checkSplitBuckets(fullJoin("k")(t(hot), t("sorted1"), t("sorted2")))
        assert(multi.comesOrdered && multi.outputOrdering.isEmpty)
        assert(slices(multi).exists(_.startMap > 0))
        for (how <- Seq("full", "left_semi")) {
          val two = checkSplitBuckets(t(hot).join(t("sorted1"), Seq("k"), how))
          assert(two.comesOrdered)
        }
      }
    }
    // Of several files a bucket Spark sorts the rows, and then there is no order to keep.
    val unsorted = checkSplitBuckets(t("sorted1").join(t("hot"), Seq("k"), "full"))
    assert(!unsorted.comesOrdered)
    compiled(checkSplitBuckets(fullJoin("k")(t("hotgroups"), t("sorted1"))))
  }

  test("a table of whose files less than a byte is read has rows, too") {
    withTable("wide") {
      val nulls = (0 until 500).map(i => lit(null).cast("string").as(s"c$i"))
      val rows = spark.range(0, 200, 1, 1).select(col("id").as("k") +: nulls: _*)
      write(rows, "wide", format = "json")
      for (how <- Seq("full", "left")) withClue(s"$how: ") {
        val join = checkSplitBuckets(t("wide").select("k").join(t("hot"), Seq("k"), how))
        assert(join.splits.partitions.forall(s => s.input == 1 && s.residual))
      }
    }
  }

  private def checkOneBlock(df: DataFrame): Unit = {
    checkWhole(df)
    assert(reasons(df) === Seq(SkewReason.OneBlock))
  }

  test("a row group is read by one task") {
    val df = fullJoin("k")(t("hotfile"), t("sorted1"))
    checkOneBlock(df)
    assert(df.queryExecution.executedPlan.toString.contains(SkewReason.OneBlock.text))
  }

  test("beside a shuffle, below a broadcast join, and made of buckets", Slow) {
    withSQLConf("spark.sql.shuffle.partitions" -> s"$Buckets") {
      val shuffled = tableOf(1, 200).where("v1 > 3")
      val join = checkSplit(t("hot").join(shuffled, Seq("k"), "full"))
      assert(reads(join).size === 1)
      // The skew is in the shuffle here.
      checkSplit(tableOf(0, 2000, hot = 2).join(t("b"), Seq("k"), "full"))
    }
    val small = tableOf(3, 20).select(col("v3").as("v0"), col("s3")).hint("broadcast")
    checkSplitBuckets(t("hot").join(small, Seq("v0"), "left").join(t("b"), Seq("k"), "full"))
    // What is made of all rows of a key is made by each task that slices the other input.
    val counted = t("b").groupBy("k").agg(count("*").as("n"))
    checkSplitBuckets(t("hot").join(counted, Seq("k"), "full"))
    val made = t("hot").groupBy("k", "v0").agg(max("s0").as("s0")).join(t("b"), Seq("k"), "full")
    checkWhole(made)
    assert(reasons(made) === Seq(SkewReason.InputNotSliceable))
    val unstable = t("hot").join(t("b").withColumn("r", rand()), Seq("k"), "full")
    assert(splitJoins({ unstable.collect(); unstable }).isEmpty)
    assert(reasons(unstable) === Seq(SkewReason.InputNotDeterministic))
  }

  test("tables in fewer partitions than buckets, of partitions, with missing buckets", Slow) {
    withTable("b2", "parts", "few") {
      write(tableOf(1, 200, maps = 1), "b2", buckets = 2)
      val coalesce = "spark.sql.bucketing.coalesceBucketsInJoin.enabled" -> "true"
      withSQLConf(Factor -> "1.05", coalesce) {
        val coalesced = checkSplitBuckets(t("hot").join(t("b2"), Seq("k"), "full"))
        assert(reads(coalesced).map(_.child.outputPartitioning.numPartitions) === Seq(2, 2))
      }
      tableOf(0, 2000, hot = 2, maps = 1)
        .withColumn("p", col("v0") % 3)
        .write
        .partitionBy("p")
        .bucketBy(Buckets, "k")
        .saveAsTable("parts")
      checkSplitBuckets(t("parts").join(t("b"), Seq("k"), "full"))
      checkSplitBuckets(t("parts").where("p > 0").join(t("b"), Seq("k"), "left"))
      // Partitions that a subquery leaves are known only when files are read.
      val pruned = t("parts").where("p = (SELECT max(v1) % 3 + 1 FROM b WHERE v1 < 50)")
      checkSplit(pruned.join(t("b"), Seq("k"), "full"))
      write(t("b").where("k = 7"), "few")
      checkSplitBuckets(t("hot").join(t("few"), Seq("k"), "full"))
      // Buckets that no condition leaves.
      checkSplitBuckets(t("hot").where("k in (3, 4, 5, 8)").join(t("b"), Seq("k"), "left"))
    }
  }

  test("ranges of files are not read where that could be seen", Slow) {
    val sorted = t("sorted1")
    withSQLConf("spark.sql.files.ignoreCorruptFiles" -> "true") {
      checkOneBlock(fullJoin("k")(t("hotgroups"), sorted))
    }
    val start = t("hotgroups").select(col("*"), col("_metadata.file_block_start").as("start"))
    checkOneBlock(fullJoin("k")(start, sorted))
    val name = t("hotgroups").select(col("*"), col("_metadata.file_name").as("name"))
    assert(slices(checkSplitBuckets(fullJoin("k")(name, sorted))).forall(_.shares == 1))
    withTable("text") {
      write(tableOf(0, 2000, hot = 2, maps = 1), "text", format = "json")
      checkOneBlock(fullJoin("k")(t("text"), sorted))
    }
  }

  test("requirements above the join", Slow) {
    val joined = t("hot").join(t("b"), Seq("k"), "left")
    def grouped(by: String) = joined.groupBy(by).agg(max("v0"), max("s0"), sum(length(col("s1"))))
    val multi = fullJoin("k")(t("hotgroups"), t("sorted1"))
    for ((df, reason) <- Seq(
        grouped("k") -> SkewReason.KeysTogether,
        multi.groupBy("k").agg(max("v0"), max("s0")) -> SkewReason.KeysTogether,
        joined.repartition(Buckets, col("k")) -> SkewReason.UserRepartition)) {
      checkWhole(df)
      assert(reasons(df) === Seq(reason), df.queryExecution.executedPlan)
    }
    // Another key is shuffled in any case.
    checkSplit(grouped("v1"))
    // The order that the join would give is made by a sort.
    val sorted = multi.sortWithinPartitions("k")
    checkSplitBuckets(sorted)
    assert(collectWithSubqueries(sorted.queryExecution.executedPlan) { case s: SortExec =>
      s
    }.size === 1)
  }

  test("not split: reasons", Slow) {
    val df = fullJoin("k")(t("hot"), t("b"))
    def whole(reason: SkewReason, settings: (String, String)*): Unit = withSQLConf(settings: _*) {
      val query = again(df)
      checkWhole(query)
      assert(reasons(query) === Seq(reason))
    }
    whole(SkewReason.NotSkewed, Threshold -> "1m")
    whole(SkewReason.LittleGain, SkewConf.SKEW_MIN_GAIN.key -> "50")
    whole(SkewReason.TooMuchReread, SkewConf.SKEW_MAX_REREAD_FACTOR.key -> "1")
    // Without adaptive execution nothing is split.
    withSQLConf("spark.sql.adaptive.enabled" -> "false")(checkWhole(again(df)))
    val even = fullJoin("k")(t("b"), t("c"))
    checkWhole(even)
    assert(reasons(even) === Seq(SkewReason.NotSkewed))
    val cached = t("b").cache()
    try {
      val withCached = fullJoin("k")(t("hot"), cached)
      checkWhole(withCached)
      assert(reasons(withCached) === Seq(SkewReason.InputNotPartitioned))
    } finally {
      cached.unpersist()
    }
  }

  test("plan, metrics and explanation", Slow) {
    withTable("allhot") {
      write(tableOf(0, 1200, hot = 4, maps = 8), "allhot")
      withSQLConf(Advisory -> "3000") {
        val df = t("allhot").join(t("b"), Seq("k"), "full")
        val join = checkSplitBuckets(df)
        val Seq(skew) = explained(df)
        assert(skew.text.startsWith(s"1 partition in ${slices(join).size} pieces, 1 residual"))
        val plan = df.queryExecution.executedPlan.toString
        assert(plan.contains(s"SlicedBuckets $Buckets buckets"))
        val parts = reads(join).head.specs.collect { case p: PartialReducerPartitionSpec => p }
        assert(parts.size === slices(join).size)
        // The tasks that mark keys read slices, too, so that the join reads no row a second time.
        assert(join.splits.markingTasks > 1)
        assert(join.metrics("numRowsOfInput0").value === 1200)
        // Nor where nothing but its keys matter, and no slice is joined.
        withSQLConf(Threshold -> "3000", Advisory -> "1000") {
          val marked = checkSplitBuckets(t("b").join(t("allhot"), Seq("k"), "left_semi"))
          assert(slices(marked).isEmpty && marked.splits.markingTasks > 1)
        }
      }
    }
  }

  test("the first slice is the whole bucket if another operator reads the files") {
    val rows = spark.range(0, 40, 1, Buckets).queryExecution.sparkPlan
    def of(specs: ShufflePartitionSpec*) =
      SlicedBucketsExec(specs, Map(1 -> Nil), rows)
        .execute()
        .map(_.getLong(0))
        .glom()
        .collect()
        .map(_.toSeq)
        .toSeq
    def slice(from: Int, until: Int) = PartialReducerPartitionSpec(1, from, until, 1)
    assert(
      of(slice(2, 3), slice(0, 2), CoalescedPartitionSpec(0, 1), CoalescedPartitionSpec(2, 4)) ===
        Seq(Nil, 10L until 20L, 0L until 10L, 20L until 40L))
  }
}
