package io.github.skewext.skew

import io.github.skewext.join.StoragePartitionsTest
import io.github.skewext.join.exec.{AlignPartitionsExec, MultiFullJoinExec}
import io.github.skewext.merge.MergeTest
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.run.SplitJoinExec
import io.github.skewext.skew.split.StorageSource

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.PartialReducerPartitionSpec
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf

/** Joins of Iceberg tables without a shuffle, in which one partition value has many files. */
class SplitStoragePartitionsSuite extends MergeTest with StoragePartitionsTest {

  /** Keys 0 to 5 and null have two files each, and keys of `hot` as many more as it says. */
  private def create(name: String, by: String, hot: Map[String, Int]): DataFrame = {
    val table = s"ice.db.split_$name"
    val v = s"v_$name"
    spark.sql(s"DROP TABLE IF EXISTS $table")
    spark.sql(s"""CREATE TABLE $table (k BIGINT, $v BIGINT) USING iceberg PARTITIONED BY ($by)
                 |TBLPROPERTIES (
                 |  'write.distribution-mode' = 'none',
                 |  'read.split.target-size' = '1000',
                 |  'read.split.open-file-cost' = '1000',
                 |  'read.split.adaptive-size.enabled' = 'false')""".stripMargin)
    def append(rows: DataFrame): Unit = rows.writeTo(table).append()
    append(spark.range(0, 21, 1, 2).selectExpr("if(id % 7 = 6, null, id % 7) AS k", s"id AS $v"))
    hot.foreach { case (key, files) =>
      append(spark.range(100, 100L + 24 * files, 1, files).selectExpr(s"$key AS k", s"id AS $v"))
    }
    spark.table(table)
  }

  private val Hot = Map("3" -> 30)

  private def tables(by: String): Seq[DataFrame] = {
    val of = by.take(1)
    Seq(
      create(s"${of}a", by, Hot),
      create(s"${of}b", by, Map("3" -> 1)),
      create(s"${of}c", by, Map.empty))
  }

  private lazy val byKey = tables("k")
  private lazy val byBucket = tables("bucket(8, k)")

  private def splits(df: DataFrame): Seq[SplitJoinExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case join: SplitJoinExec => join }

  private def checkFiles(df: DataFrame): SplitJoinExec = {
    checkJoin(df)
    assert(exchanges(df).isEmpty, df.queryExecution.executedPlan)
    assert(splits(df).size === 1, s"${reasons(df)} ${df.queryExecution.executedPlan}")
    splits(df).head
  }

  private def checkUnsplit(df: DataFrame): Unit = {
    checkJoin(df)
    assert(splits(df).isEmpty, df.queryExecution.executedPlan)
  }

  test("tasks share the files of a value, in full joins of two and more tables") {
    for (all <- Seq(byKey, byBucket); n <- Seq(2, 3)) {
      val split = checkFiles(fullJoin("k")(all.take(n): _*))
      assert(split.splits.pieces > 2)
      assert(split.collect { case a: AlignPartitionsExec if a.specs.nonEmpty => a }.size === n)
    }
    checkFiles(fullJoin("k")(byKey(1), byKey(2), byKey.head))
    inGeneratedCode(checkFiles(fullJoin("k")(byKey: _*)))
  }

  test("a file counts by its share of the table's bytes") {
    create("u", "k", Hot)
    // One file is as large as several others.
    val rows = spark.range(1000, 3000, 1, 1).selectExpr("3L AS k", "hash(id) * 1L AS v_u")
    rows.writeTo("ice.db.split_u").append()
    val df = fullJoin("k")(spark.table("ice.db.split_u"), byKey(2))
    val split = checkFiles(df)
    val Seq(hot) = split.collect {
      case a: AlignPartitionsExec if a.output.exists(_.name == "v_u") => a
    }
    assert(hot.specs.nonEmpty, split)
    val Some(scan) = hot.collectFirst { case scan: BatchScanExec => scan }
    val Some(source) = StorageSource.of(hot.copy(child = scan, specs = Nil), sliceable = true)
    val value = source.bytes.indexOf(source.bytes.max)
    val bytes = source.blocks(value).map(_.bytes)
    assert(bytes.max > 3 * bytes.sorted.apply(bytes.size / 2), bytes)
    val large = bytes.indexOf(bytes.max)
    val (alone, others) = hot.specs
      .collect { case part: PartialReducerPartitionSpec if part.reducerIndex == value => part }
      .partition(part => part.startMapIndex <= large && large < part.endMapIndex)
    def files(part: PartialReducerPartitionSpec) = part.endMapIndex - part.startMapIndex
    assert(alone.nonEmpty && others.nonEmpty, hot.specs)
    assert(alone.map(files).max < others.map(files).max, s"${hot.specs} $bytes")
  }

  test("other roles", Slow) {
    for (roles <- Seq(
        Seq("required", "optional", "optional"),
        Seq("optional", "required", "optional"),
        Seq("required", "excluded", "optional"),
        Seq("required", "required", "optional")))
      checkFiles(multiJoin(byKey, Seq("k"), roles = roles))
  }

  test("Spark's own joins, whatever the side of the hot value", Slow) {
    val (a, b) = (byKey.head, byKey(1))
    for {
      how <- Seq("full", "left", "right", "inner", "left_semi", "left_anti")
      (left, right) <- Seq((a, b), (b, a))
    } {
      val df = left.join(right, Seq("k"), how)
      df.collect()
      assert(exchanges(df).isEmpty, df.queryExecution.executedPlan)
      assert(splits(df).size === 1, s"$how ${df.queryExecution.executedPlan}")
      assertSameRows(df.collect(), rowsWhenOff(df), how)
    }
    // Spark divides the files of a value itself, if it may.
    withSQLConf(SQLConf.V2_BUCKETING_PARTIALLY_CLUSTERED_DISTRIBUTION_ENABLED.key -> "true") {
      val df = a.join(b, Seq("k"), "left")
      assertSameRows(df.collect(), rowsWhenOff(df), "divided by Spark")
      assert(splits(df).isEmpty, df.queryExecution.executedPlan)
    }
  }

  test("null keys with many files") {
    val nulls = create("n", "k", Map("cast(null AS BIGINT)" -> 30))
    checkFiles(fullJoin("k")(nulls, byKey(1), byKey(2)))
  }

  test("filters and projections run on the files of each task, aggregates on whole values", Slow) {
    val filtered = byKey.head.where("v_ka % 3 <> 0").withColumn("x", col("v_ka") + 1)
    checkFiles(fullJoin("k")(filtered, byKey(1), byKey(2)))
    val grouped = byKey(1).groupBy("k").agg(max("v_kb").as("m"))
    checkFiles(fullJoin("k")(byKey.head, grouped))
    val hotGroups = byKey.head.groupBy("k").agg(max("v_ka").as("m"))
    checkUnsplit(fullJoin("k")(hotGroups, byKey(1)))
  }

  test("joins stay whole by settings, below a group-by of the key, and without skew", Slow) {
    val df = fullJoin("k")(byKey: _*)
    for (off <- Seq(
        SkewConf.SKEW_ENABLED.key -> "false",
        SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false",
        SQLConf.SKEW_JOIN_SKEWED_PARTITION_THRESHOLD.key -> "1g"))
      withSQLConf(off)(checkUnsplit(again(df)))
    val counts = df.groupBy("k").agg(count("*").as("n"))
    checkUnsplit(counts)
    assert(exchanges(counts).isEmpty)
    checkUnsplit(fullJoin("k")(byKey(1), byKey(2)))
  }

  test("a filter that is made while the query runs leaves the join whole") {
    val df = multiJoin(
      Seq(byKey(2).where("v_kc in (3, 10)"), byKey.head),
      Seq("k"),
      roles = Seq("required", "optional"))
    withSQLConf(PrunesAtRuntime: _*)(checkUnsplit(again(df)))
  }

  test("files that are not those of the plan fail the query", Slow) {
    val df = fullJoin("k")(byKey: _*)
    checkFiles(df)
    val split = splits(df).head.mapChildren {
      case a: AlignPartitionsExec => a.copy(values = a.values.tail)
      case other => other
    }
    assert(split.isInstanceOf[SplitJoinExec] && !split.isInstanceOf[MultiFullJoinExec])
    val error = intercept[IllegalStateException](split.execute())
    assert(error.getMessage.contains("are not those that the join was planned for"))
  }
}
