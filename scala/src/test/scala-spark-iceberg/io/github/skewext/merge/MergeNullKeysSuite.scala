package io.github.skewext.merge

import io.github.skewext.facts.BuiltinShuffledJoin
import io.github.skewext.nullkeys.SpreadNulls
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.{SkewReason, SkewSettings}
import io.github.skewext.skew.run.SplitJoinExec

import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, ShuffledJoin}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{Column, DataFrame}

/** MERGEs into tables of Iceberg from a source of which most rows have no key. */
class MergeNullKeysSuite extends MergeTest {

  private val Target = "ice.db.target"
  private val Hot = 1000L
  private val Spread = SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key
  private val id = col("id")

  private val clauses = Map(
    'M' -> """WHEN MATCHED AND s.v % 3 = 0 THEN DELETE
             |WHEN MATCHED THEN UPDATE SET v = s.v, txt = s.txt""".stripMargin,
    'N' -> "WHEN NOT MATCHED THEN INSERT (k, v, txt) VALUES (coalesce(s.k, -s.v), s.v, s.txt)",
    'S' -> """WHEN NOT MATCHED BY SOURCE AND t.k % 5 = 0 THEN DELETE
             |WHEN NOT MATCHED BY SOURCE AND t.k % 5 = 1 THEN UPDATE SET v = -1""".stripMargin)

  private def mergeOf(kinds: String, source: String = "once", table: String = Target): String =
    s"MERGE INTO $table t USING $source s ON t.k = s.k\n" + kinds.map(clauses).mkString("\n")

  private def rows(n: Long, key: Column): DataFrame =
    spark
      .range(0, n, 1, 4)
      .select(
        key.cast("bigint").as("k"),
        id.as("v"),
        md5(id.cast("string").cast("binary")).as("txt"))

  /** Of ten rows nine have no key; the last row has that of the first, or one of its own. */
  private def source(last: Long): DataFrame =
    rows(1200, when(id === 1199, last).when(id % 10 === 0, id / 10))

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    write(rows(60, when(id % 7 > 0, id)), Target)
    source(last = 2000).createOrReplaceTempView("once")
    source(last = 10).union(source(2000).where("v = 100")).createOrReplaceTempView("twice")
  }

  /** Those of Spark that are left, that of the MERGE itself first. */
  private def joins(plan: SparkPlan): Seq[ShuffledJoin] =
    collect(plan) { case BuiltinShuffledJoin(join) => join }

  private def isSpread(join: ShuffledJoin): Boolean =
    (join.leftKeys ++ join.rightKeys).exists(SpreadNulls.isOne)

  /** The largest partition of the source's shuffle, over the median. */
  private def skew(plan: SparkPlan): Double = {
    val source = collect(joins(plan).head.right) { case s: ShuffleQueryStageExec => s }.head
    val sizes = source.mapStats.get.bytesByPartitionId.toSeq
    sizes.max.toDouble / SkewSettings.median(sizes)
  }

  private def checkSpread(df: DataFrame): Unit = {
    val plan = planOf(df)
    assert(joins(plan).exists(isSpread), plan)
    assert(skew(plan) < 2, plan)
    assert(!reasonsIn(plan).contains(SkewReason.MergeTarget), plan)
    assert(explained(df).exists(_.text.contains("without a key are spread over all tasks")))
  }

  /** @param why what is said of rows without a key; nothing if none come out */
  private def checkTogether(df: DataFrame, why: Option[String]): Unit = {
    assert(!joins(planOf(df)).exists(isSpread), planOf(df))
    val said = explained(df).map(_.text).filter(_.contains("without a key"))
    assert(said.map(_.split("go to one task: ").last) === why.toSeq)
  }

  private def inModes[A](cases: Seq[A]): Seq[(String, A)] =
    for (mode <- Seq(CopyOnWrite, MergeOnRead); each <- cases) yield (mode, each)

  for ((mode, kinds) <- inModes(Seq("MN", "MNS"))) {
    test(s"$kinds, $mode: they go to all tasks, and what matches twice is found", Slow) {
      setMode(Target, mode)
      checkSpread(checkLegal(Target, mergeOf(kinds)))
      for (spread <- Seq("true", "false")) {
        withSQLConf(Spread -> spread) {
          assert(restoring(Target)(findsTwice(runMerge(mergeOf(kinds, "twice")))))
        }
      }
    }
  }

  test("where none of them come out, or the source may be split", Slow) {
    for ((mode, kinds) <- covering(inModes(Seq("M", "MS", "N", "NS")))) {
      setMode(Target, mode)
      withClue(s"$kinds, $mode: ")(checkTogether(checkLegal(Target, mergeOf(kinds)), None))
    }
    setMode(Target, CopyOnWrite)
    spark
      .range(0, 120, 1, 4)
      .select(id.as("k"), id.as("v"), lit("x").as("txt"))
      .createOrReplaceTempView("with_keys")
    checkTogether(checkLegal(Target, mergeOf("MN", "with_keys")), None)
    // Compared by <=> a null is a key like others.
    write(rows(60, id), "ice.db.with_keys")
    val nullSafe = mergeOf("MN", table = "ice.db.with_keys").replace("t.k = s.k", "t.k <=> s.k")
    checkTogether(checkLegal("ice.db.with_keys", nullSafe), None)
  }

  test("where it is switched off, or costs a shuffle", Slow) {
    setMode(Target, MergeOnRead)
    withSQLConf(Spread -> "false") {
      val df = checkLegal(Target, mergeOf("MN"))
      checkTogether(df, Some(s"$Spread is false"))
      assert(skew(planOf(df)) > 3)
    }
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      checkTogether(checkLegal(Target, mergeOf("MN")), Some("the plan is not adaptive"))
    }
    spark.table("once").repartition(5, col("k")).createOrReplaceTempView("repartitioned")
    spark
      .table("once")
      .groupBy("k")
      .agg(max("v").as("v"), max("txt").as("txt"))
      .createOrReplaceTempView("grouped")
    for ((source, why) <- Seq(
        "repartitioned" -> "already partitioned by the key: input 1",
        "grouped" -> "already partitioned by the key: input 1")) {
      val df = checkLegal(Target, mergeOf("MN", source))
      val shuffles = collect(planOf(df)) { case s: ShuffleQueryStageExec => s }
      assert(shuffles.size === 2)
      checkTogether(df, Some(why))
    }
  }

  test("the recipe: changed rows once with the key and once without", Slow) {
    setMode(Target, CopyOnWrite)
    write(rows(300, id), "ice.db.updates")
    spark
      .sql(s"""SELECT k, v + 7 AS v, txt FROM ice.db.updates
              |UNION ALL
              |SELECT null, u.v + 7, u.txt FROM ice.db.updates u JOIN $Target t ON u.k = t.k
              |UNION ALL
              |SELECT null, v + 1000, txt FROM ice.db.updates""".stripMargin)
      .createOrReplaceTempView("recipe")
    checkSpread(checkLegal(Target, mergeOf("MN", "recipe")))
  }

  test("by hash, in generated code, in order, and below a shuffle of the write", Slow) {
    def byHash(): Unit = withSQLConf(
      "spark.sql.join.preferSortMergeJoin" -> "false",
      "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold" -> "100MB") {
      val df = checkLegal(Target, mergeOf("MN"))
      assert(joins(planOf(df)).exists(_.isInstanceOf[ShuffledHashJoinExec]), planOf(df))
      checkSpread(df)
    }
    def compiled(): Unit = inGeneratedCode(checkSpread(checkLegal(Target, mergeOf("MNS"))))
    def belowShuffle(): Unit = {
      val df = checkLegal("ice.db.hashed", mergeOf("MN", table = "ice.db.hashed"))
      assert(collect(planOf(df)) { case s: ShuffleQueryStageExec => s }.size === 3, planOf(df))
      assert(joins(planOf(df)).exists(isSpread), planOf(df))
    }
    write(rows(60, when(id % 7 > 0, id)), "ice.db.hashed", distribution = "hash")
    spark.sql("ALTER TABLE ice.db.hashed ADD PARTITION FIELD truncate(1, txt)")
    for ((mode, check) <- covering(inModes(Seq(byHash _, compiled _, belowShuffle _)))) {
      Seq(Target, "ice.db.hashed").foreach(setMode(_, mode))
      check()
    }
  }

  test("any column of a composite key may be null", Slow) {
    setMode(Target, CopyOnWrite)
    val merge = mergeOf("MNS").replace("t.k = s.k", "t.k = s.k AND t.txt = s.txt")
    spark
      .table("once")
      .withColumn("txt", when(col("v") % 4 > 0, col("txt")))
      .createOrReplaceTempView("both")
    val df = checkLegal(Target, merge.replace("once", "both"))
    assert(joins(planOf(df)).exists(isSpread), planOf(df))
    assert(skew(planOf(df)) < 2)
  }

  test("the target has a hot key: it is split, and they are spread", Slow) {
    write(rows(900, when(id % 3 > 0, Hot).otherwise(id / 3)), "ice.db.hot")
    source(last = Hot).createOrReplaceTempView("meets_hot")
    for ((mode, kinds) <- covering(inModes(Seq("MN", "MNS")))) {
      setMode("ice.db.hot", mode)
      val df = checkLegal("ice.db.hot", mergeOf(kinds, "meets_hot", "ice.db.hot"))
      val Seq(split) = collect(planOf(df)) { case join: SplitJoinExec => join }
      assert(split.spreadNullKeys && split.keys.forall(_.size == 1))
      val shuffled = split.children.flatMap(collect(_) { case s: ShuffleQueryStageExec =>
        s.shuffle.outputPartitioning
      })
      assert(
        shuffled.collect { case HashPartitioning(_ :+ by, _) => SpreadNulls.isOne(by) } ===
          Seq(false, true))
      assert(explained(df).exists(_.text.contains("without a key are spread over all tasks")))
      assert(restoring("ice.db.hot")(findsTwice {
        spark
          .table("meets_hot")
          .union(spark.table("meets_hot").where("k = 1000"))
          .createOrReplaceTempView("meets_twice")
        runMerge(mergeOf(kinds, "meets_twice", "ice.db.hot"))
      }))
    }
  }
}
