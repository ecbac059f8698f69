package io.github.skewext.bucket

import java.io.File
import java.nio.file.Files

import io.github.skewext.platform.SkewConf
import org.apache.hadoop.mapreduce.JobContext

import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage
import org.apache.spark.sql.connector.{FakeV2Provider, InMemoryTableSessionCatalog}
import org.apache.spark.sql.execution.datasources.{BucketingUtils, SQLHadoopMapReduceCommitProtocol}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{AnalysisException, DataFrame}

/** One file a bucket, and per value of the partition columns, whatever is written. */
class BucketedWriterSuite extends SortedBucketTest {

  private def data(rows: Int, partitions: Int = 3): DataFrame = spark
    .range(0, rows, 1, partitions)
    .selectExpr("if(id % 10 = 3, null, id % 37) AS k", "id AS v", "cast(id % 3 as string) AS p")

  private def assertOneFileEach(table: String, times: Int = 1): Unit = {
    assert(filesPerBucket(table).nonEmpty)
    assert(filesPerBucket(table).values.toSet === Set(times))
  }

  /** Whether each file's rows are in order, and in the bucket that Spark computes. */
  private def assertSorted(table: String, buckets: Int): Unit = {
    val rows = spark
      .table(table)
      .selectExpr("k", s"pmod(hash(k), $buckets)", "_metadata.file_path")
      .collect()
    for ((path, ofFile) <- rows.groupBy(_.getString(2))) {
      val keys = ofFile.toSeq.map(row => if (row.isNullAt(0)) Long.MinValue else row.getLong(0))
      assert(keys === keys.sorted)
      assert(ofFile.map(_.getInt(1)).toSet === Set(BucketingUtils.getBucketId(path).get))
    }
  }

  test("skewed buckets have far more rows than the median, the largest comes first") {
    def written(rows: Long*) = WrittenBuckets(
      "t",
      rows.zipWithIndex.map { case (n, i) => WrittenBuckets.Bucket(i, 1, n, 10 * n) },
      factor = 2)
    assert(written(5, 11, 5, 40, 10, 5, 0).skewed.map(_.number) === Seq(3, 1))
    assert(written(5, 5, 10).skewed.isEmpty && written().skewed.isEmpty)
    // Of empty buckets the median is none.
    assert(written(0, 0, 3).skewed.map(_.number) === Seq(2))
  }

  test("writes one sorted file per bucket and returns their sizes", Slow) {
    withAdaptive {
      withTable("t") {
        val written = write(data(500), "t", Seq("k"), buckets = 4)
        assertOneFileEach("t")
        assertSorted("t", 4)
        assertSameRows(spark.table("t").collect().toSeq, data(500).collect().toSeq, "the data")
        assert(written.table === "spark_catalog.default.t")
        assert(written.buckets.map(_.number) === (0 until 4))
        assert(written.buckets.map(_.files).sum === 4)
        assert(written.buckets.map(_.rows).sum === 500)
        assert(written.buckets.map(_.bytes).sum === files("t").map(_.length).sum)
        val counted = spark.table("t").selectExpr("pmod(hash(k), 4) AS b").groupBy("b").count()
        assert(
          counted.collect().map(r => r.getInt(0) -> r.getLong(1)).toMap ===
            written.buckets.map(b => b.number -> b.rows).toMap)

        val appended = write(data(100), "t", Seq("k"), buckets = 4, mode = "append")
        assertOneFileEach("t", times = 2)
        assert(appended.buckets.map(_.rows).sum === 100)
        assert(appended.buckets.map(_.files).sum === 4)
        assert(spark.table("t").count() === 600)

        val ignored = write(data(100), "t", Seq("k"), buckets = 4, mode = "ignore")
        assert(ignored.buckets.map(_.files).sum === 0)
        assert(spark.table("t").count() === 600)

        write(data(50), "t", Seq("k"), buckets = 2, mode = "overwrite")
        assertOneFileEach("t")
        assertSorted("t", 2)
        assert(spark.table("t").count() === 50)
        intercept[AnalysisException](write(data(1), "t", Seq("k"), buckets = 2))
      }
    }
  }

  test("partition columns, an empty string and null among their values", Slow) {
    val values = Seq("a", "", null, "b/c=1", "ä")
    val rows = data(400).withColumn(
      "p",
      element_at(typedLit(values), (col("v") % values.size).cast("int") + 1))
    withAdaptive {
      withTable("t") {
        val written = write(rows, "t", Seq("k"), buckets = 3, partitionBy = Seq("p"))
        assertOneFileEach("t")
        // Spark has no folder for an empty string.
        assert(filesPerBucket("t").size === 3 * 4)
        assert(written.buckets.map(_.rows).sum === 400)
        assert(written.buckets.map(_.files) === Seq(4, 4, 4))
        assertSorted("t", 3)
        write(rows, "t", Seq("k"), buckets = 3, partitionBy = Seq("p"), mode = "append")
        assertOneFileEach("t", times = 2)
        val expected = rows.withColumn("p", when(col("p") =!= "", col("p"))).collect().toSeq
        assertSameRows(
          spark.table("t").select("k", "v", "p").collect().toSeq,
          expected ++ expected,
          "the data")
      }
    }
  }

  test(
    "rows that come partitioned by the same columns, from a join or a table with such buckets",
    Slow) {
    withTable("t", "u", "hot") {
      val hot = spark.range(0, 4000, 1, 4).selectExpr("if(id % 2 = 0, 7, id % 50) AS k", "id AS v")
      withSQLConf(
        "spark.sql.shuffle.partitions" -> "4",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "4k",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "1k",
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "1") {
        for (ours <- Seq("true", "false")) {
          withSQLConf(SkewConf.ENABLED.key -> ours) {
            val other = spark.range(50).selectExpr("id AS k", "id AS w")
            write(hot.join(other, "k"), "t", Seq("k"), buckets = 4, mode = "overwrite")
            assertOneFileEach("t")
            assert(spark.table("t").count() === 4000)
          }
        }
      }
      write(spark.table("t"), "u", Seq("k"), buckets = 4)
      assertOneFileEach("u")
      withSQLConf("spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "1.5") {
        val report = write(hot, "hot", Seq("k"), buckets = 4)
        val most = report.buckets.maxBy(_.rows)
        assert(report.skewed === Seq(most) && most.rows > 2000)
      }
    }
  }

  test("appended rows go where the table's own types put them", Slow) {
    withTable("longs", "chars", "parts") {
      def appended(df: DataFrame, table: String, partitionBy: Seq[String] = Nil): Unit = {
        val before = files(table).map(_.getName).toSet
        write(df, table, Seq("k"), sortBy = Some(Nil), partitionBy = partitionBy, mode = "append")
        val added = filesPerBucket(table)
        assert(files(table).exists(file => !before(file.getName)))
        assert(added.values.forall(_ <= 1), added)
      }
      spark.sql(
        "CREATE TABLE longs (k BIGINT, v INT) USING parquet CLUSTERED BY (k) INTO 3 BUCKETS")
      appended(spark.range(0, 60, 1, 5).selectExpr("cast(id as int) k", "1 v"), "longs")
      spark.sql(
        "CREATE TABLE chars (k CHAR(5), v VARCHAR(3)) USING parquet CLUSTERED BY (k) INTO 3 BUCKETS")
      appended(
        spark.range(0, 60, 1, 5).selectExpr("concat(id, repeat(' ', id % 4)) AS k", "'v' AS v"),
        "chars")
      spark.sql(
        "CREATE TABLE parts (k BIGINT, p INT) USING parquet PARTITIONED BY (p) CLUSTERED BY (k) " +
          "INTO 3 BUCKETS")
      withSQLConf("spark.sql.storeAssignmentPolicy" -> "LEGACY") {
        appended(
          spark.range(0, 90, 1, 5).selectExpr("id AS k", "if(id % 2 = 0, '1', '01') AS p"),
          "parts",
          Seq("p"))
      }
    }
  }

  test("several columns in another order, other formats and options, a path, a database", Slow) {
    withTable("t") {
      withTempDir { folder =>
        write(
          data(100),
          "default.T",
          Seq("v", "K"),
          buckets = 2,
          sortBy = Some(Seq("k", "v")),
          format = "orc",
          options = Map("compression" -> "zlib", "path" -> folder.getCanonicalPath))
        assert(folder.listFiles().count(_.getName.endsWith(".zlib.orc")) === 2)
        assertSameRows(spark.table("t").collect().toSeq, data(100).collect().toSeq, "the data")
        val again = write(
          data(100),
          "spark_catalog.default.t",
          Seq("v", "k"),
          buckets = 2,
          sortBy = Some(Seq("k", "v")),
          mode = "append",
          options = Map("path" -> folder.getCanonicalPath))
        assert(again.buckets.map(_.rows).sum === 100)
      }
    }
    withTable("t") {
      val written =
        write(data(100), "t", Seq("k"), buckets = 2, options = Map("maxRecordsPerFile" -> "10"))
      assert(written.buckets.map(_.files).sum >= 10)
      assert(written.buckets.map(_.rows).sum === 100)
    }
  }

  test("nothing to write, one bucket, and more buckets than keys", Slow) {
    withTable("none", "one", "many") {
      val none = write(data(0), "none", Seq("k"))
      assert(none.buckets.map(_.rows).sum === 0 && spark.table("none").count() === 0)
      write(data(20), "one", Seq("k"), buckets = 1)
      assertOneFileEach("one")
      write(data(20).where("k < 3"), "many", Seq("k"), buckets = 16)
      assertOneFileEach("many")
      assert(spark.table("many").select("k").distinct().count() === 3)
    }
  }

  private def withCommitted(f: => Unit)(body: => Unit): Unit = {
    RunsAfterCommit.next = Some(() => f)
    withSQLConf(SQLConf.FILE_COMMIT_PROTOCOL_CLASS.key -> classOf[RunsAfterCommit].getName)(body)
    assert(RunsAfterCommit.next.isEmpty)
  }

  test("does not count rows that others append at the same time", Slow) {
    for (partitionBy <- Seq(Nil, Seq("p"))) withTable("t") {
      def append(rows: Int): WrittenBuckets =
        write(data(rows), "t", Seq("k"), buckets = 2, mode = "append", partitionBy = partitionBy)
      append(10)
      var other = WrittenBuckets.nothing("t", 2)
      withCommitted { other = append(50) } {
        val written = append(30)
        assert(written.isKnown && written.buckets.map(_.rows).sum === 30)
        assert(other.isKnown && other.buckets.map(_.rows).sum === 50)
        val all = append(0).buckets ++ written.buckets ++ other.buckets
        assert(all.map(_.files).sum === files("t").size - filesOf(10, partitionBy))
      }
      assert(spark.table("t").count() === 90)
    }
  }

  private def filesOf(rows: Int, partitionBy: Seq[String]): Int = {
    val folders = partitionBy.map(col) :+ expr("pmod(hash(k), 2)")
    data(rows).select(folders: _*).distinct().count().toInt
  }

  test("no error after the commit, when all rows are there", Slow) {
    withTable("t") {
      write(data(10), "t", Seq("k"), buckets = 2)
      val broken = new File(files("t").head.getParentFile, "part-00009-x_00001.c000.parquet")
      withCommitted(Files.write(broken.toPath, "no footer".getBytes)) {
        val written = write(data(20), "t", Seq("k"), buckets = 2, mode = "append")
        assert(!written.isKnown && written.skewed.isEmpty)
        // As the tasks have counted them; of files and bytes nothing is known.
        assert(written.buckets.map(_.rows).sum === 20)
        assert(written.buckets.forall(bucket => bucket.files == 0 && bucket.bytes == 0))
        assert(written.json.contains("\"known\":false"))
      }
      assert(broken.delete())
      spark.catalog.refreshTable("t")
      assert(spark.table("t").count() === 30)
    }
  }

  test("a value with a line break is not a lost row") {
    val lines = data(20).selectExpr("k", "if(v = 5, 'a\nb', 'c') AS l")
    for ((format, isKnown) <- Seq("csv" -> false, "json" -> true, "orc" -> true)) {
      withTable("t") {
        val written = write(lines, "t", Seq("k"), format = format)
        assert(written.isKnown === isKnown, format)
        assert(written.buckets.map(_.rows).sum === 20)
      }
    }
  }

  test("an append has the table's format, whatever the session's default is") {
    withTable("t") {
      write(data(10), "t", Seq("k"))
      withSQLConf(SQLConf.DEFAULT_DATA_SOURCE_NAME.key -> "noop") {
        write(data(5), "t", Seq("k"), mode = "append")
      }
      assert(spark.table("t").count() === 15)
    }
  }

  test("tables of others are refused before anything happens") {
    def refused(table: String, format: String = null): Unit =
      for (mode <- Seq("overwrite", "append", "error", "ignore")) {
        val error = intercept[AnalysisException](
          write(data(1), table, Seq("k"), mode = mode, format = format))
        assert(error.getMessage.contains("cannot be written by bucket"))
      }
    withTable("other") {
      spark.sql(
        "CREATE TABLE other USING org.apache.spark.sql.sources.SimpleScanSource " +
          "OPTIONS (From '1', To '10')")
      refused("other")
      refused("other", format = "parquet")
      assert(spark.table("other").count() === 10)
    }
    refused("u", format = "jdbc")
    refused("u", format = "delta")
    withSQLConf(SQLConf.DEFAULT_DATA_SOURCE_NAME.key -> "noop")(refused("u"))
    refused("delta.`/tmp/nowhere`")
    assert(!spark.catalog.tableExists("u"))
    // A catalog that stands in for Spark's own, as those of Delta and Iceberg do.
    val catalog = SQLConf.V2_SESSION_CATALOG_IMPLEMENTATION.key
    withSQLConf(catalog -> classOf[InMemoryTableSessionCatalog].getName) {
      spark.sql(s"CREATE TABLE mine (i INT, j INT) USING ${classOf[FakeV2Provider].getName}")
      refused("mine", format = "parquet")
      refused("spark_catalog.default.mine", format = "parquet")
      spark.sql("DROP TABLE mine")
    }
  }

  test("tables that cannot be written so") {
    withTable("t") {
      write(data(10), "t", Seq("k"))
      def message(f: => Any): String = intercept[AnalysisException](f).getMessage
      assert(message(write(data(1), "t", Seq("k"))).contains("already exists"))
      assert(
        message(write(data(1), "t", Seq("k"), buckets = 5, mode = "append"))
          .contains("bucketing does not match"))
      assert(message(write(data(1), "x.y.z", Seq("k"))).contains("not in the session catalog"))
      assert(message(write(data(1), "u", Seq("nope"))).contains("nope"))
      assert(message(write(data(1), "u", Seq("k"), mode = "upsert")).contains("upsert"))
      assert(!spark.catalog.tableExists("u"))
      withView("v") {
        spark.sql("CREATE VIEW v AS SELECT * FROM t")
        for (mode <- Seq("append", "overwrite", "error")) {
          assert(message(write(data(1), "v", Seq("k"), mode = mode)).contains("is a view"))
        }
        assert(write(data(1), "v", Seq("k"), mode = "ignore").buckets.map(_.rows).sum === 0)
      }
    }
  }
}

/** Does something when a write has been committed, once. */
class RunsAfterCommit(jobId: String, path: String, overwritesPartitions: Boolean)
    extends SQLHadoopMapReduceCommitProtocol(jobId, path, overwritesPartitions) {

  override def commitJob(job: JobContext, taskCommits: Seq[TaskCommitMessage]): Unit = {
    super.commitJob(job, taskCommits)
    val what = RunsAfterCommit.next
    RunsAfterCommit.next = None
    what.foreach(_())
  }
}

object RunsAfterCommit {
  @volatile var next: Option[() => Unit] = None
}
