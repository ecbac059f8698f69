package io.github.skewext.bucket

import java.io.File
import java.util.TimeZone

import io.github.skewext.bucket.files.SortedFilesExec
import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkException
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.{Ascending, SortOrder}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._

/** The order of a bucket's file is used, and nothing is sorted. */
class SortedFilesSuite extends SortedBucketTest {

  private val TwoTables = Seq("t0", "t1")

  private def data(i: Int, from: Int = 0, rows: Int = 20): DataFrame = spark
    .range(from, from + rows, 1, 2)
    .select(
      when(col("id") % 9 =!= i, concat(lit("device-"), (col("id") * (i + 2)) % 23)).as("k"),
      (col("id") % 4).as("l"),
      (col("id") + 100 * i).as(s"v$i"))

  /** Tables of one file a bucket, for tests that only read. */
  private val Tables = Seq("a", "b", "c")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    for ((name, i) <- Tables.zipWithIndex) write(data(i, rows = 50), name, Seq("k"))
  }

  private def a: DataFrame = spark.table("a")
  private def b: DataFrame = spark.table("b")
  private def c: DataFrame = spark.table("c")

  /** Tables of one file a bucket and folder. */
  private def withTables(
      by: Seq[String] = Seq("k"),
      sortBy: Option[Seq[String]] = None,
      partitionBy: Seq[String] = Nil,
      format: String = "parquet")(f: (DataFrame, DataFrame) => Unit): Unit =
    withTable(TwoTables: _*) {
      for ((name, i) <- TwoTables.zipWithIndex) {
        val writer = data(i, rows = 35)
          .coalesce(1)
          .write
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
        checkInFileOrder(a.join(b, Seq("k"), how), 2)
      }
      val joined = a.join(b.withColumnRenamed("k", "key"), col("k") === col("key"))
      checkInFileOrder(joined.select(col("v0") + col("v1"), col("key")), 2)
    }
  }

  test("compiled code and columns below the node", Slow) {
    compiled {
      checkInFileOrder(a.join(b.where("v1 % 3 = 1"), "k"), 2)
      checkInFileOrder(a.join(b, Seq("k"), "full"), 2)
      assert(inFileOrder(checkFullJoin("k")(a, b)).size === 2)
      withSQLConf("spark.sql.parquet.enableVectorizedReader" -> "false") {
        checkInFileOrder(a.join(b, Seq("k"), "full"), 2)
      }
    }
  }

  test("metrics") {
    val joined = a.join(b, "k")
    joined.collect()
    // Rows with a null key are filtered below the node.
    val expected = Seq(a, b).map(_.where("k is not null").count())
    assert(inFileOrder(joined).map(_.metrics("numOutputRows").value) === expected)
    val scans = plan(joined) { case s: FileSourceScanExec => s }
    assert(scans.map(_.metrics("numFiles").value) === Seq(3, 3))
  }

  test("filters and projections keep the order") {
    val filtered = a.where("v0 % 3 = 1").select(col("k").as("key"), col("v0") * 2)
    checkInFileOrder(filtered.join(b, col("key") === col("k"), "left"), 2)
    checkInFileOrder(a.where("k > 'device-2'").join(b.where("v1 < 0"), "k"), 2)
  }

  test("aggregates that sort, and windows") {
    withAdaptive {
      checkInFileOrder(a.groupBy("k").agg(max(col("k").substr(1, 3)), count("*")), 1)
      checkInFileOrder(a.withColumn("n", count("*").over(Window.partitionBy("k"))), 1)
    }
  }

  test("the inputs of a multi-way join, all or none", Slow) {
    withAdaptive {
      val joined = multiJoin(Seq(a, b, c), Seq("k"))
      checkJoin(joined)
      assert(inFileOrder(joined).size === 3)
      assert(operator(joined).comesOrdered)
      assert(exchanges(joined).isEmpty && sorts(joined) === 0)
    }
    // What wants their order finds it.
    val window = fullJoin("k")(a, b, c).withColumn("n", count("*").over(Window.partitionBy("k")))
    check(window)
    assert(sorts(window) === 0 && inFileOrder(window).size === 3)
    val mixed = fullJoin("k")(a, b, data(2))
    check(mixed)
    assert(inFileOrder(mixed).isEmpty)
    assert(reasons(mixed).distinct === Seq(FileOrderReason.OtherInputs))
  }

  test("several files in a bucket are sorted, and a multi-way join groups their rows by hash") {
    withTable("t0") {
      for (n <- 0 until 2) write(data(0, n * 15), "t0", Seq("k"), mode = "append")
      val joined = spark.table("t0").join(b, "k")
      check(joined)
      assert(reasons(joined) === Seq(FileOrderReason.SeveralFiles))
      assert(sorts(joined) === 1 && inFileOrder(joined).size === 1 && shuffles(joined) === 0)
      val three = fullJoin("k")(spark.table("t0"), b, c)
      checkSorted(three, FileOrderReason.SeveralFiles, FileOrderReason.OtherInputs)
      assert(sorts(three) === 0 && shuffles(three) === 0 && !operator(three).comesOrdered)
    }
  }

  test("a task that finds several files sorts their rows", Slow) {
    withTable("t0") {
      for (n <- 0 until 2) write(data(0, n * 15), "t0", Seq("k"), mode = "append")
      withSQLConf("spark.sql.parquet.enableVectorizedReader" -> "false") {
        val Seq(scan, _) = plan(spark.table("t0").join(b, "k")) { case s: FileSourceScanExec => s }
        val rows = SortedFilesExec(Seq(SortOrder(scan.output.head, Ascending)), scan).execute()
        val keys = rows
          .mapPartitions(rows =>
            Iterator(rows.map(r => Option(r.getUTF8String(0)).fold("")(_.toString)).toList))
          .collect()
        assert(keys.map(_.size).sum === spark.table("t0").count())
        keys.foreach(partition => assert(partition === partition.sorted))
      }
    }
  }

  test("partition columns", Slow) {
    withTables(partitionBy = Seq("l")) { case (t0, t1) =>
      checkSorted(t0.drop("l").join(t1.drop("l"), "k"), FileOrderReason.SeveralFiles)
      withAdaptive {
        checkInFileOrder(t0.where("l = 1").join(t1.where("l = 3"), "k"), 2)
        // It is not known yet which folders are read.
        val pruned = t0.where("l = 1").join(t1.where("l = (select max(v0) % 4 from t0)"), "k")
        check(pruned)
        assert(reasons(pruned) === Seq(FileOrderReason.SeveralFiles))
      }
    }
  }

  test("files sorted by more columns than required, by fewer, and by others", Slow) {
    withTables(sortBy = Some(Seq("k", "l"))) { case (t0, t1) =>
      checkInFileOrder(t0.join(t1, "k"), 2)
      checkInFileOrder(t0.drop("l").join(t1.drop("l"), "k"), 2)
      val windowed = t0.withColumn("n", rank().over(Window.partitionBy("k").orderBy("l")))
      checkInFileOrder(windowed, 1)
      val descending = Window.partitionBy("k").orderBy(col("l").desc)
      val other = t0.withColumn("n", rank().over(descending))
      checkSorted(other, FileOrderReason.OtherOrder)
      assert(sorts(other) === 1)
    }
    withTables(sortBy = Some(Seq("l", "k"))) { case (t0, t1) =>
      checkSorted(t0.join(t1, "k"), FileOrderReason.OtherOrder)
      // Nothing is left to be sorted by where the first column is not read.
      checkSorted(t0.drop("l").join(t1.drop("l"), "k"))
    }
    withTables(sortBy = Some(Nil)) { case (t0, t1) => checkSorted(t0.join(t1, "k")) }
  }

  test("keys of two columns", Slow) {
    withTables(by = Seq("k", "l")) { case (t0, t1) =>
      checkInFileOrder(t0.join(t1, Seq("k", "l")), 2)
      assert(inFileOrder(checkFullJoin("k", "l")(t0, t1)).size === 2)
    }
  }

  test("expressions that depend on the current file or row keep the sort") {
    for (own <- Seq(monotonically_increasing_id(), input_file_name(), rand(3))) {
      val kept = a.withColumn("own", own).join(b, Seq("k"), "left")
      check(kept)
      assert(inFileOrder(kept).size === 1 && sorts(kept) === 1)
      assert(reasons(kept) === Seq(FileOrderReason.NonDeterministic))
    }
    val named = a.select(col("k"), col("v0"), col("_metadata.file_name").as("file"))
    checkInFileOrder(named.join(b, Seq("k"), "left"), 2)
  }

  test("switched off, no buckets, and other formats", Slow) {
    def joined: DataFrame = a.join(b, "k")
    withAdaptive {
      withSQLConf(SkewConf.BUCKET_ORDER.key -> "false") {
        checkSorted(joined, FileOrderReason.SwitchedOff)
      }
    }
    withSQLConf(SkewConf.ENABLED.key -> "false")(assert(inFileOrder(joined).isEmpty))
    withSQLConf("spark.sql.sources.bucketing.enabled" -> "false")(checkSorted(joined))
    // A scan that needs no buckets reads files in parts, in any order.
    checkSorted(a.sortWithinPartitions("k"))
    withTables(format = "csv") { case (t0, t1) =>
      checkSorted(t0.join(t1, "k"), FileOrderReason.Format)
    }
    withTables(format = "orc") { case (t0, t1) => checkInFileOrder(t0.join(t1, "k"), 2) }
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
        val rows = spark.range(0, 35, 1, 1).selectExpr(s"$key AS k", "id AS v0")
        rows.write.bucketBy(2, "k").sortBy("k").saveAsTable("t0")
        val (t0, t1) = (spark.table("t0"), spark.table("t0").withColumnRenamed("v0", "v1"))
        compiled(checkInFileOrder(t0.join(t1, Seq("k"), "full"), 2))
        assert(inFileOrder(checkFullJoin("k")(t0, t1)).size === 2)
      }
    }
  }

  test("floating-point keys, which Spark normalizes and so does not join by bucket") {
    withTable("t0") {
      val value = "element_at(array(-0D, 0D, double('NaN'), null, 1.5D), cast(id % 5 as int) + 1)"
      val rows = spark.range(0, 20, 1, 2).selectExpr(s"$value AS k", "id AS v0")
      for (_ <- 0 until 2) write(rows, "t0", Seq("k"), mode = "append")
      checkSorted(spark.table("t0").join(spark.table("t0"), Seq("k"), "full"))
    }
  }

  test("a schema that has changed, missing and empty buckets, empty tables", Slow) {
    withTables() { case (_, t1) =>
      spark.sql("ALTER TABLE t0 ADD COLUMNS (more STRING)")
      checkInFileOrder(spark.table("t0").join(t1, "k"), 2)
      checkInFileOrder(spark.table("t0").where("more is null").join(t1, Seq("k"), "full"), 2)
      // A bucket may lose all its files without anybody asking for them.
      val gone = files("t1").filter(_.getName.contains("_00001."))
      assert(gone.nonEmpty && gone.forall(_.delete()))
      spark.sql("REFRESH TABLE t1")
      checkInFileOrder(spark.table("t0").join(spark.table("t1"), Seq("k"), "full"), 2)
    }
    withTable(TwoTables: _*) {
      TwoTables.foreach(name => write(data(0).where("v0 < 0"), name, Seq("k")))
      checkInFileOrder(spark.table("t0").join(spark.table("t1"), Seq("k"), "full"), 2)
      write(data(0).where("v0 = 3"), "t1", Seq("k"), mode = "append")
      checkInFileOrder(spark.table("t0").join(spark.table("t1"), Seq("k"), "full"), 2)
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
          message.contains(SkewConf.BUCKET_ORDER.key)
        })
        withSQLConf(SkewConf.BUCKET_ORDER.key -> "false") {
          checkSorted(joined, FileOrderReason.SwitchedOff)
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
      assert(reasons(joined) === Seq(FileOrderReason.FileNames))
      assert(renamed.renameTo(one))
      spark.sql("REFRESH TABLE t0")
      val planned = joined
      assert(inFileOrder(planned).size === 2)
      assert(one.delete())
      val error = intercept[SparkException](planned.collect())
      assert(causes(error).exists(_.getMessage.contains("does not exist")))
      withSQLConf("spark.sql.files.ignoreMissingFiles" -> "true")(checkInFileOrder(joined, 2))
    }
  }

  test("joins of joins, subqueries, caches, and rows that only a part is taken of", Slow) {
    withAdaptive {
      checkInFileOrder(a.join(b.drop("l"), "k").join(c.drop("l"), "k"), 3)
      val sub = a.join(b, "k").where("v0 = (select max(v0) from a join c using (k))")
      check(sub)
      assert(inFileOrder(sub).size === 4 && sorts(sub) === 0)
    }
    check(a.join(b, "k").orderBy("k", "v0", "v1").limit(5))
    val cached = a.join(b.drop("l"), "k").persist()
    try check(cached.groupBy("l").count())
    finally cached.unpersist(blocking = true)
    val coalesced = a.join(b, "k").coalesce(1)
    check(coalesced)
    assert(inFileOrder(coalesced).size === 2)
  }

  test("a table with buckets and one without, which is shuffled and sorted") {
    val joined = a.join(data(1), "k")
    check(joined)
    assert(inFileOrder(joined).size === 1 && sorts(joined) === 1 && shuffles(joined) === 1)
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
      checkSorted(window("at, v"), FileOrderReason.OtherOrder)
      checkInFileOrder(window("at"), 1)
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
          checkSorted(window("s"), FileOrderReason.OtherOrder)
          checkInFileOrder(spark.sql("SELECT *, count(*) OVER (PARTITION BY k) FROM t0"), 1)
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
        checkSorted(window("at"), FileOrderReason.OtherOrder)
      } finally {
        TimeZone.setDefault(zone)
      }
    }
  }

  test("coalesced buckets have several files", Slow) {
    withTable("t0") {
      write(data(0), "t0", Seq("k"), buckets = 6)
      withSQLConf("spark.sql.bucketing.coalesceBucketsInJoin.enabled" -> "true") {
        val joined = spark.table("t0").join(b, "k")
        check(joined)
        assert(reasons(joined) === Seq(FileOrderReason.SeveralFiles))
      }
    }
  }

  test("nothing happens to tables without sorted buckets") {
    withTable("plain") {
      data(0).write.saveAsTable("plain")
      checkSorted(spark.table("plain").join(spark.table("plain").select("k"), "k"))
    }
  }
}
