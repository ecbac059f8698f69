package io.github.skewext.bucket

import io.github.skewext.platform.SkewConf

import java.io.File
import java.util.TimeZone


import org.apache.spark.SparkException
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._

/** The files of a bucket are merged, and nothing is sorted. */
class MergeSortedFilesSuite extends SortedBucketTest {

  private val TwoTables = Seq("t0", "t1")

  private def data(i: Int, from: Int = 0, rows: Int = 20): DataFrame = spark
    .range(from, from + rows, 1, 2)
    .select(
      when(col("id") % 9 =!= i, concat(lit("device-"), (col("id") * (i + 2)) % 23)).as("k"),
      (col("id") % 4).as("l"),
      (col("id") + 100 * i).as(s"v$i"))

  /** Tables of three files a bucket, for tests that only read. */
  private val Tables = Seq("a", "b", "c")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    for ((name, i) <- Tables.zipWithIndex; n <- 0 until 3) {
      write(data(i, n * 15), name, Seq("k"), mode = "append")
    }
  }

  private def a: DataFrame = spark.table("a")
  private def b: DataFrame = spark.table("b")
  private def c: DataFrame = spark.table("c")

  /** Tables of two files a bucket. */
  private def withTables(
      by: Seq[String] = Seq("k"),
      sortBy: Option[Seq[String]] = None,
      partitionBy: Seq[String] = Nil,
      format: String = "parquet")(f: (DataFrame, DataFrame) => Unit): Unit =
    withTable(TwoTables: _*) {
      for ((name, i) <- TwoTables.zipWithIndex) {
        val writer = data(i, rows = 35).write
          .format(format)
          .partitionBy(partitionBy: _*)
          .bucketBy(3, by.head, by.tail: _*)
        val sorts = sortBy.getOrElse(by)
        (if (sorts.isEmpty) writer else writer.sortBy(sorts.head, sorts.tail: _*)).saveAsTable(name)
      }
      f(spark.table("t0"), spark.table("t1"))
    }

  private def causes(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq

  test("sort-merge joins of all types, adaptive and not", Slow) {
    withAdaptive {
      for (how <- Seq("inner", "left", "full", "left_semi", "left_anti")) {
        checkMerged(a.join(b, Seq("k"), how), 2)
      }
      val joined = a.join(b.withColumnRenamed("k", "key"), col("k") === col("key"))
      checkMerged(joined.select(col("v0") + col("v1"), col("key")), 2)
      assert(merges(joined).map(_.mostFiles) === Seq(3, 3))
    }
  }

  test("compiled code and columns below the merge", Slow) {
    compiled {
      checkMerged(a.join(b.where("v1 % 3 = 1"), "k"), 2)
      checkMerged(a.join(b, Seq("k"), "full"), 2)
      assert(merges(checkFullJoin("k")(a, b)).size === 2)
      withSQLConf("spark.sql.parquet.enableVectorizedReader" -> "false") {
        checkMerged(a.join(b, Seq("k"), "full"), 2)
      }
    }
  }

  test("metrics") {
    val joined = a.join(b, "k")
    joined.collect()
    assert(merges(joined).map(_.metrics("numFiles").value) === Seq(9, 9))
    // Rows with a null key are filtered below the merge.
    val expected = Seq(a, b).map(_.where("k is not null").count())
    assert(merges(joined).map(_.metrics("numOutputRows").value) === expected)
    val scans = plan(joined) { case s: FileSourceScanExec => s }
    assert(scans.map(_.metrics("numFiles").value) === Seq(9, 9))
  }

  test("filters and projections are below the merge, file by file") {
    val filtered = a.where("v0 % 3 = 1").select(col("k").as("key"), col("v0") * 2)
    checkMerged(filtered.join(b, col("key") === col("k"), "left"), 2)
    checkMerged(a.where("k > 'device-2'").join(b.where("v1 < 0"), "k"), 2)
  }

  test("aggregates that sort, and windows") {
    withAdaptive {
      checkMerged(a.groupBy("k").agg(max(col("k").substr(1, 3)), count("*")), 1)
      checkMerged(a.withColumn("n", count("*").over(Window.partitionBy("k"))), 1)
    }
  }

  test("the inputs of a multi-way join, all or none", Slow) {
    withAdaptive {
      val joined = multiJoin(Seq(a, b, c), Seq("k"))
      checkJoin(joined)
      assert(merges(joined).size === 3)
      assert(operator(joined).comesOrdered)
      assert(exchanges(joined).isEmpty && sorts(joined) === 0)
    }
    // What wants their order finds it.
    val window = fullJoin("k")(a, b, c).withColumn("n", count("*").over(Window.partitionBy("k")))
    check(window)
    assert(sorts(window) === 0 && merges(window).size === 3)
    val mixed = fullJoin("k")(a, b, data(2))
    check(mixed)
    assert(merges(mixed).isEmpty)
    assert(reasons(mixed).distinct === Seq(SortedFileMergeReason.OtherInputs))
    withSQLConf(SkewConf.MULTI_JOIN_ORDER.key -> "none") {
      val unordered = fullJoin("k")(a, b, c)
      check(unordered)
      assert(merges(unordered).isEmpty && !operator(unordered).comesOrdered)
    }
    withSQLConf(SkewConf.MULTI_JOIN_ORDER.key -> "natural") {
      val natural = fullJoin("k")(a, b, data(2))
      check(natural)
      assert(merges(natural).size === 2 && sorts(natural) === 1)
    }
  }

  test("one file a bucket: Spark does not rely on its order, we check it") {
    withTable("t0") {
      write(data(0), "t0", Seq("k"))
      val joined = spark.table("t0").join(b, "k")
      checkMerged(joined, 2)
      assert(merges(joined).map(_.mostFiles) === Seq(1, 3))
    }
  }

  test("tables that Spark wrote by itself", Slow) {
    withTable("t0") {
      for (n <- 0 until 2) {
        data(0, n * 30, rows = 60).write
          .mode("append")
          .option("maxRecordsPerFile", "4")
          .bucketBy(3, "k")
          .sortBy("k")
          .saveAsTable("t0")
      }
      // Every task wrote a file for each bucket, and more than one.
      assert(filesPerBucket("t0").values.forall(_ > 6))
      checkMerged(spark.table("t0").join(b, "k"), 2)
    }
  }

  test("partition columns", Slow) {
    withTables(partitionBy = Seq("l")) { case (t0, t1) =>
      checkMerged(t0.drop("l").join(t1.drop("l"), "k"), 2)
      checkMerged(t0.where("l > 17").join(t1, "k"), 2)
      withAdaptive {
        checkMerged(t0.where("l = 1").join(t1.where("l in (1, 3)"), "k"), 2)
        val pruned = t0.join(t1.where("l = (select max(v0) % 4 from t0)"), "k")
        check(pruned)
        assert(merges(pruned).size === 2 && sorts(pruned) === 0)
      }
    }
  }

  test("files sorted by more columns than required, by fewer, and by others", Slow) {
    withTables(sortBy = Some(Seq("k", "l"))) { case (t0, t1) =>
      checkMerged(t0.join(t1, "k"), 2)
      checkMerged(t0.drop("l").join(t1.drop("l"), "k"), 2)
      val windowed = t0.withColumn("n", rank().over(Window.partitionBy("k").orderBy("l")))
      checkMerged(windowed, 1)
      val descending = Window.partitionBy("k").orderBy(col("l").desc)
      val other = t0.withColumn("n", rank().over(descending))
      checkNotMerged(other, SortedFileMergeReason.OtherOrder)
      assert(sorts(other) === 1)
    }
    withTables(sortBy = Some(Seq("l", "k"))) { case (t0, t1) =>
      checkNotMerged(t0.join(t1, "k"), SortedFileMergeReason.OtherOrder)
      // Nothing is left to be sorted by where the first column is not read.
      checkNotMerged(t0.drop("l").join(t1.drop("l"), "k"))
    }
    withTables(sortBy = Some(Nil)) { case (t0, t1) => checkNotMerged(t0.join(t1, "k")) }
  }

  test("keys of two columns", Slow) {
    withTables(by = Seq("k", "l")) { case (t0, t1) =>
      checkMerged(t0.join(t1, Seq("k", "l")), 2)
      assert(merges(checkFullJoin("k", "l")(t0, t1)).size === 2)
    }
  }

  test("expressions that depend on the order of the scan keep that order") {
    for (own <- Seq(monotonically_increasing_id(), input_file_name(), rand(3))) {
      val kept = a.withColumn("own", own).join(b, Seq("k"), "left")
      kept.collect()
      assert(merges(kept).size === 1 && sorts(kept) === 1)
      assert(reasons(kept) === Seq(SortedFileMergeReason.NonDeterministic))
    }
    // Each file's rows say which they are from.
    val named = a.select(col("k"), col("v0"), col("_metadata.file_name").as("file"))
    checkMerged(named.join(b, Seq("k"), "left"), 2)
  }

  test("switched off, and too many files, or too large ones", Slow) {
    def joined: DataFrame = a.join(b, "k")
    withAdaptive {
      withSQLConf(SkewConf.BUCKET_MERGE.key -> "false") {
        checkNotMerged(joined, SortedFileMergeReason.SwitchedOff)
      }
    }
    withSQLConf(SkewConf.BUCKET_MERGE_MAX_FILES.key -> "2") {
      checkNotMerged(joined, SortedFileMergeReason.ManyFiles)
    }
    withSQLConf(SkewConf.BUCKET_MERGE_MULTI_JOIN_MAX_FILES.key -> "2") {
      checkMerged(joined, 2)
      val three = fullJoin("k")(a, b, c)
      checkNotMerged(three, SortedFileMergeReason.ManyFilesOfMultiJoin)
      assert(sorts(three) === 0 && shuffles(three) === 0 && !operator(three).comesOrdered)
    }
    withSQLConf(SkewConf.BUCKET_MERGE_MAX_BYTES.key -> "1") {
      checkNotMerged(joined, SortedFileMergeReason.LargeFiles)
    }
    withSQLConf(SkewConf.ENABLED.key -> "false")(assert(merges(joined).isEmpty))
    withSQLConf("spark.sql.sources.bucketing.enabled" -> "false")(checkNotMerged(joined))
    // A scan that needs no buckets reads files in parts, in any order.
    checkNotMerged(a.sortWithinPartitions("k"))
    withTables(format = "csv") { case (t0, t1) =>
      checkNotMerged(t0.join(t1, "k"), SortedFileMergeReason.Format)
    }
    withTables(format = "orc") { case (t0, t1) => checkMerged(t0.join(t1, "k"), 2) }
  }

  test("keys of all kinds, nulls among them", Slow) {
    val keys = Seq(
      "cast(if(id % 5 = 0, null, id % 7) as int)",
      "id % 7 - 3 + if(id % 11 = 0, -9223372036854775805, 0)",
      "cast((id % 7 - 3) / 4 as decimal(7, 2))",
      "cast((id % 7 - 3) / 4 as decimal(30, 2))",
      s"concat('${"x" * 30}', if(id % 3 = 0, 'ä', ''), id % 5)",
      "cast(concat('b', char(250 + id % 7)) as binary)",
      "struct(id % 3, if(id % 2 = 0, null, 'b'))",
      "array(id % 3, id % 2)")
    for (key <- some(4, keys)) withClue(key) {
      withTable("t0") {
        val rows = spark.range(0, 35, 1, 2).selectExpr(s"$key AS k", "id AS v0")
        rows.write.bucketBy(2, "k").sortBy("k").saveAsTable("t0")
        val (t0, t1) = (spark.table("t0"), spark.table("t0").withColumnRenamed("v0", "v1"))
        compiled(checkMerged(t0.join(t1, Seq("k"), "full"), 2))
        assert(merges(checkFullJoin("k")(t0, t1)).size === 2)
      }
    }
  }

  test("floating-point keys, which Spark normalizes and so does not join by bucket") {
    withTable("t0") {
      val value = "element_at(array(-0D, 0D, double('NaN'), null, 1.5D), cast(id % 5 as int) + 1)"
      val rows = spark.range(0, 20, 1, 2).selectExpr(s"$value AS k", "id AS v0")
      for (_ <- 0 until 2) write(rows, "t0", Seq("k"), mode = "append")
      checkNotMerged(spark.table("t0").join(spark.table("t0"), Seq("k"), "full"))
    }
  }

  test("a schema that has changed, missing and empty buckets, empty tables", Slow) {
    withTables() { case (_, t1) =>
      spark.sql("ALTER TABLE t0 ADD COLUMNS (more STRING)")
      val more = data(0, 7).withColumn("more", lit("m"))
      write(more, "t0", Seq("k"), mode = "append")
      checkMerged(spark.table("t0").join(t1, "k"), 2)
      checkMerged(spark.table("t0").where("more is null").join(t1, Seq("k"), "full"), 2)
      // A bucket may lose all its files without anybody asking for them.
      val gone = files("t1").filter(_.getName.contains("_00001."))
      assert(gone.nonEmpty && gone.forall(_.delete()))
      spark.sql("REFRESH TABLE t1")
      checkMerged(spark.table("t0").join(spark.table("t1"), Seq("k"), "full"), 2)
    }
    withTable(TwoTables: _*) {
      TwoTables.foreach(name => write(data(0).where("v0 < 0"), name, Seq("k")))
      checkMerged(spark.table("t0").join(spark.table("t1"), Seq("k"), "full"), 2)
      write(data(0).where("v0 = 3"), "t1", Seq("k"), mode = "append")
      checkMerged(spark.table("t0").join(spark.table("t1"), Seq("k"), "full"), 2)
    }
  }

  test("files that are not sorted as the table declares fail the query") {
    withTable("unsorted", "claimed") {
      withTempDir { folder =>
        data(0)
          .coalesce(1)
          .orderBy(desc("v0"))
          .write
          .option("path", folder.getCanonicalPath)
          .bucketBy(2, "k")
          .saveAsTable("unsorted")
        spark.sql(
          "CREATE TABLE claimed (k STRING, l BIGINT, v0 BIGINT) USING parquet CLUSTERED BY (k) " +
            s"SORTED BY (k) INTO 2 BUCKETS LOCATION '${folder.toURI}'")
        def joined: DataFrame =
          spark.table("claimed").join(spark.table("claimed").select("k", "l"), "k")
        val error = intercept[SparkException](joined.collect())
        assert(causes(error).map(_.getMessage).exists { message =>
          message.contains("are not in order") && message.contains("default.claimed") &&
          message.contains(SkewConf.BUCKET_MERGE.key)
        })
        withSQLConf(SkewConf.BUCKET_MERGE.key -> "false") {
          checkNotMerged(joined, SortedFileMergeReason.SwitchedOff)
        }
      }
    }
  }

  test("files that are gone or have other names give Spark's own errors", Slow) {
    withTables() { case (_, t1) =>
      def joined: DataFrame = spark.table("t0").join(t1, "k")
      def failure(on: Boolean): String = {
        var message = ""
        withSQLConf(SkewConf.ENABLED.key -> on.toString) {
          message = causes(intercept[Exception](joined.collect())).last.getMessage
        }
        message
      }
      val one = files("t0").head
      val renamed = new File(one.getParentFile, "part-nobody-knows.parquet")
      assert(one.renameTo(renamed))
      spark.sql("REFRESH TABLE t0")
      assert(failure(on = true) === failure(on = false))
      assert(failure(on = true).contains("nobody-knows"))
      assert(reasons(joined) === Seq(SortedFileMergeReason.FileNames))
      assert(renamed.renameTo(one))
      spark.sql("REFRESH TABLE t0")
      val planned = joined
      assert(merges(planned).size === 2)
      assert(one.delete())
      val error = intercept[SparkException](planned.collect())
      assert(causes(error).exists(_.getMessage.contains("does not exist")))
      withSQLConf("spark.sql.files.ignoreMissingFiles" -> "true")(checkMerged(joined, 2))
    }
  }

  test("joins of joins, subqueries, caches, and rows that only a part is taken of", Slow) {
    withAdaptive {
      checkMerged(a.join(b.drop("l"), "k").join(c.drop("l"), "k"), 3)
      val sub = a.join(b, "k").where("v0 = (select max(v0) from a join c using (k))")
      check(sub)
      assert(merges(sub).size === 4 && sorts(sub) === 0)
    }
    check(a.join(b, "k").orderBy("k", "v0", "v1").limit(5))
    val cached = a.join(b.drop("l"), "k").persist()
    try check(cached.groupBy("l").count())
    finally cached.unpersist(blocking = true)
    val coalesced = a.join(b, "k").coalesce(1)
    check(coalesced)
    assert(merges(coalesced).size === 2)
  }

  test("a table with buckets and one without, which is shuffled and sorted") {
    val joined = a.join(data(1), "k")
    check(joined)
    assert(merges(joined).size === 1 && sorts(joined) === 1 && shuffles(joined) === 1)
  }

  private def window(order: String): DataFrame =
    spark.sql(s"SELECT *, rank() OVER (PARTITION BY k ORDER BY $order) AS n FROM t0")

  test("Parquet files with milliseconds are in order of a timestamp, but not of the next column") {
    withTable("t0") {
      spark.sql(
        "CREATE TABLE t0(k INT, at TIMESTAMP, v INT) USING parquet " +
          "CLUSTERED BY (k) SORTED BY (k, at, v) INTO 2 BUCKETS")
      withSQLConf("spark.sql.parquet.outputTimestampType" -> "TIMESTAMP_MILLIS") {
        spark.sql(
          "INSERT INTO t0 SELECT /*+ COALESCE(1) */ * FROM VALUES " +
            "(1, TIMESTAMP'2024-01-01 00:00:00.123100', 9), " +
            "(1, TIMESTAMP'2024-01-01 00:00:00.123200', 1)")
      }
      checkNotMerged(window("at, v"), SortedFileMergeReason.OtherOrder)
      checkMerged(window("at"), 1)
    }
  }

  test("Parquet files with milliseconds are not in order of a struct or array of timestamps") {
    withSQLConf("spark.sql.parquet.outputTimestampType" -> "TIMESTAMP_MILLIS") {
      for (s <- Seq("named_struct('at', at, 'v', v)", "array(named_struct('at', at, 'v', v))"))
        withTable("t0") {
          spark
            .sql(
              s"SELECT 1 AS k, $s AS s, v FROM VALUES " +
                "(TIMESTAMP'2024-01-01 00:00:00.000900', 1), " +
                "(TIMESTAMP'2024-01-01 00:00:00.000100', 2) AS rows(at, v)")
            .coalesce(1)
            .write
            .bucketBy(2, "k")
            .sortBy("k", "s")
            .saveAsTable("t0")
          checkNotMerged(window("s"), SortedFileMergeReason.OtherOrder)
          checkMerged(spark.sql("SELECT *, count(*) OVER (PARTITION BY k) FROM t0"), 1)
        }
    }
  }

  test("ORC files that are read in another time zone are not in order of a timestamp") {
    withTable("t0") {
      spark.sql(
        "CREATE TABLE t0(k INT, at TIMESTAMP) USING orc " +
          "CLUSTERED BY (k) SORTED BY (k, at) INTO 2 BUCKETS")
      val zone = TimeZone.getDefault
      try {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"))
        spark.sql(
          "INSERT INTO t0 SELECT /*+ COALESCE(1) */ * FROM VALUES " +
            "(1, TIMESTAMP'2024-03-10 02:30:00Z'), (1, TIMESTAMP'2024-03-10 03:00:00Z')")
        TimeZone.setDefault(TimeZone.getTimeZone("America/New_York"))
        checkNotMerged(window("at"), SortedFileMergeReason.OtherOrder)
      } finally {
        TimeZone.setDefault(zone)
      }
    }
  }

  test("coalesced buckets keep their order", Slow) {
    withTable("t0") {
      for (n <- 0 until 2) write(data(0, n), "t0", Seq("k"), buckets = 6, mode = "append")
      withSQLConf("spark.sql.bucketing.coalesceBucketsInJoin.enabled" -> "true") {
        val joined = spark.table("t0").join(b, "k")
        checkMerged(joined, 2)
        assert(merges(joined).map(_.mostFiles) === Seq(4, 3))
      }
    }
  }

  test("nothing happens to tables without sorted buckets") {
    withTable("plain") {
      data(0).write.saveAsTable("plain")
      checkNotMerged(spark.table("plain").join(spark.table("plain").select("k"), "k"))
    }
  }
}
