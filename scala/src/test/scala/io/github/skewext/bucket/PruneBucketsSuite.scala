package io.github.skewext.bucket

import java.io.File

import io.github.skewext.explain.Place
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.execution.datasources.BucketingUtils
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{DataFrame, Row}

/** Conditions on several bucket columns choose the files that are read. */
class PruneBucketsSuite extends BucketScanTest {

  private val Buckets = 16

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    save(rows.coalesce(1), "t", Buckets, "a", "b")
  }

  override protected def afterAll(): Unit =
    try sql("DROP TABLE IF EXISTS t")
    finally super.afterAll()

  private def rows: DataFrame = spark
    .range(400)
    .selectExpr(
      "if(id % 19 = 3, null, cast(id % 17 as int)) AS a",
      "if(id % 23 = 5, null, concat('b', id % 11)) AS b",
      "id AS v")

  private def where(condition: String): DataFrame = sql(s"SELECT * FROM t WHERE $condition")

  /** The buckets of the rows that a list of values says. */
  private def bucketsOf(values: (Any, Any)*): Set[Int] = {
    val buckets = values.map { case (a, b) => pmod(hash(lit(a).cast("int"), lit(b)), lit(Buckets)) }
    spark.range(1).select(buckets: _*).head().toSeq.map(_.asInstanceOf[Int]).toSet
  }

  test("a look-up on two bucket columns reads one bucket of 16") {
    for (mode <- Seq(Nil, Seq(Static))) withSQLConf(mode: _*) {
      val df = where("a = 4 AND b = 'b4'")
      assert(checkAnswer(df).nonEmpty)
      assert(bucketsRead(df) === bucketsOf(4 -> "b4"))
      assert(filesRead(scans(df).head).size === 1)
      assert(scans(df).head.metadata("Bucketed").startsWith("false"))
      val scan = explained(df, "t")
      assert((scan.read, scan.buckets, scan.by) === ((1, Buckets, Seq("a", "b"))))
      assert(scan.why === "pruned by the filters" && scan.advice.isEmpty)
      val off = again(df)
      withSQLConf(SkewConf.EXCLUDED_RULES.key -> PruneBuckets.ruleName) {
        off.collect()
        assert(bucketsRead(off).size > 12)
        assert(explained(off, "t").why === "the rule PruneBuckets is excluded by a setting")
      }
      withSQLConf(Off) {
        val off = again(df)
        off.collect()
        assert(bucketsRead(off).size > 12)
        assert(explained(off, "t").why === "spark.skewext.enabled is false")
      }
      withSQLConf(SQLConf.BUCKETING_ENABLED.key -> "false") {
        val off = again(df)
        off.collect()
        assert(bucketsRead(off).size > 12)
      }
    }
  }

  test("conditions in all forms", Slow) {
    for ((condition, values) <- Seq[(String, Seq[(Any, Any)])](
        "a <=> 4 AND b <=> 'b4'" -> Seq(4 -> "b4"),
        "'b4' = b AND 4 = a AND v > 5" -> Seq(4 -> "b4"),
        "a IN (1, 2, null) AND b IN ('b1', 'b2')" ->
          Seq(1 -> "b1", 1 -> "b2", 2 -> "b1", 2 -> "b2"),
        "a IS NULL AND b = 'b1'" -> Seq((null, "b1")),
        "a IS NULL AND b <=> null" -> Seq((null, null)),
        "(a = 1 AND b = 'b1') OR (a = 2 AND b IS NULL)" -> Seq(1 -> "b1", (2, null)),
        "(a = 1 OR a = 2) AND b = 'b1' AND NOT v = 7" -> Seq(1 -> "b1", 2 -> "b1"),
        // An int is compared with a long, a decimal, a double.
        "a = 4L AND b = 'b4'" -> Seq(4 -> "b4"),
        "a = 4.0 AND b = 'b4'" -> Seq(4 -> "b4"),
        "a = 4D AND b = 'b4'" -> Seq(4 -> "b4"),
        "a IN (4L, 5L) AND b = 'b4'" -> Seq(4 -> "b4", 5 -> "b4"),
        "a = '4' AND b = 'b4'" -> Seq(4 -> "b4"),
        "a IN (1,2,3,4,5,6,7,8,9,10,11,12) AND b = 'b4'" -> (1 to 12).map(_ -> "b4"),
        "(a = 4 OR a = 5) AND (b = 'b4' OR v < 0 AND b = 'b5')" ->
          (for (a <- 4 to 5; b <- 4 to 5) yield a -> s"b$b"))) {
      val df = where(condition)
      checkAnswer(df)
      val expected = bucketsOf(values: _*)
      val scan = scans(df).head
      assert(scan.optionalBucketSet.get.iterator.toSet === expected, condition)
      assert(bucketsRead(df).subsetOf(expected), condition)
    }
    // No row can come: Spark leaves the table out by itself, or no file is read.
    val none = where("a = 4.5 AND b = 'b4'")
    assert(checkAnswer(none).isEmpty)
    assert(scans(none).forall(filesRead(_).isEmpty))
  }

  test("conditions that leave a column open read all buckets, and why", Slow) {
    for ((condition, why) <- Seq(
        "a = 4" -> "(b)",
        "a = 4 AND NOT b = 'b4'" -> "(b)",
        "a = 4 AND b <> 'b4'" -> "(b)",
        "a = 4 AND b NOT IN ('b4', 'b5')" -> "(b)",
        "a > 4 AND b = 'b4'" -> "(a)",
        "a + 1 = 5 AND b = 'b4'" -> "(a)",
        "a = 4 AND substr(b, 1) = 'b4'" -> "(b)",
        "a = v AND b = 'b4'" -> "(a)",
        "a = cast(rand() * 17 AS int) AND b = 'b4'" -> "(a)",
        "a = (SELECT max(a) FROM t) AND b = 'b4'" -> "(a)",
        "NOT (a = 4 AND b = 'b4')" -> "no filter",
        "(a = 4 AND b = 'b4') OR v = 3" -> "no filter",
        "v = 3" -> "no filter")) {
      val df = where(condition)
      if (condition.contains("rand")) df.collect() else checkAnswer(df)
      scans(df).foreach(scan => assert(bucketsRead(scan).size > 12, condition))
      val scansOf = explained(df)
      assert(scansOf.forall(_.read === Buckets))
      val reasons = scansOf.map(_.why)
      assert(reasons.exists(_.contains(why)), s"$condition: $reasons")
    }
    val numbers = (1 to 101).mkString(", ")
    val df =
      where(s"a IN ($numbers) AND b IN ('b1', ${(1 to 100).map(n => s"'c$n'").mkString(", ")})")
    checkAnswer(df)
    assert(bucketsRead(df).size > 12)
    assert(explained(df, "t").why.contains("too many values"))
  }

  test("buckets and joins by them: the scan keeps its partitions, and nothing is shuffled", Slow) {
    withTable("u") {
      val u = save(rows.where("v < 100").withColumnRenamed("v", "w"), "u", Buckets, "a", "b")
      withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1") {
        for (mode <- Seq(Nil, Seq(Static))) withSQLConf(mode: _*) {
          val df = spark
            .table("t")
            .join(u, Seq("a", "b"))
            .where("a IN (4, 5) AND b = 'b4'")
          assert(checkAnswer(df).nonEmpty)
          val expected = bucketsOf(4 -> "b4", 5 -> "b4")
          scans(df).foreach { scan =>
            assert(scan.optionalBucketSet.get.iterator.toSet === expected)
            assert(scan.outputPartitioning.numPartitions === Buckets && scan.bucketedScan)
          }
          assert(exchanges(df).isEmpty)
          assert(explained(df).map(_.partitions) === Seq.fill(2)(Some(Buckets)))
          // Of ours, with a condition above the join.
          val full = fullJoin("a", "b")(spark.table("t"), u).where("a = 4 AND b = 'b4'")
          checkJoin(full)
          scans(full).foreach(scan => assert(bucketsRead(scan) === bucketsOf(4 -> "b4")))
          assert(exchanges(full).isEmpty)
        }
      }
    }
  }

  test("wherever a scan is: subqueries, cached tables, commands, twice in a query", Slow) {
    val sub = sql("SELECT (SELECT max(v) FROM t WHERE a = 4 AND b = 'b4') AS m")
    checkAnswer(sub)
    assert(bucketsRead(sub) === bucketsOf(4 -> "b4"))
    assert(explained(sub).map(_.place) === Seq(Place.Subquery))
    val cached = where("a = 4 AND b = 'b4'").cache()
    try {
      assert(cached.collect().nonEmpty)
      assert(explained(cached).map(s => (s.place, s.read)) === Seq((Place.Cached, 1)))
    } finally {
      cached.unpersist()
    }
    val twice = where("a = 4 AND b = 'b4'").union(where("a = 5 AND b = 'b5'"))
    checkAnswer(twice)
    assert(scans(twice).map(bucketsRead) === Seq(bucketsOf(4 -> "b4"), bucketsOf(5 -> "b5")))
  }

  private def text(value: Any): String = value match {
    case bytes: Array[Byte] => bytes.mkString(" ")
    case other => String.valueOf(other)
  }

  test("all types: a literal in SQL finds each row in one bucket", Slow) {
    withTable("types") {
      val columns = Seq(
        "boolean" -> "v % 2 = 0",
        "byte" -> "cast(v % 5 - 2 as byte)",
        "short" -> "cast(v % 5 - 2 as short)",
        "int" -> "cast(v % 5 - 2 as int)",
        "long" -> "(v % 5 - 2) * 10000000000",
        "decimal(9,2)" -> "cast((v % 5 - 2) * 1.5 as decimal(9,2))",
        "decimal(30,4)" -> "cast((v % 5 - 2) * 1.5 as decimal(30,4))",
        "string" -> "concat('s', v % 5)",
        "char(4)" -> "concat('s', v % 5)",
        "varchar(4)" -> "concat('s', v % 5)",
        "binary" -> "cast(concat('s', v % 5) as binary)",
        "date" -> "date_add(DATE'2020-01-01', cast(v % 5 as int))",
        "timestamp" -> "timestamp_millis(v % 5 * 1001)",
        "timestamp_ntz" -> "cast(timestamp_millis(v % 5 * 1001) as timestamp_ntz)",
        "float" -> "cast(v % 5 - 1.5 as float)",
        "double" -> "if(v % 5 = 1, double('NaN'), v % 5 - 1.5)")
      val cases = for (format <- Seq("parquet", "orc"); column <- columns) yield (format, column)
      some(4, cases).foreach { case (format, (dataType, expression)) =>
        sql("DROP TABLE IF EXISTS types")
        sql(
          s"CREATE TABLE types (x $dataType, y int, v long) USING $format " +
            "CLUSTERED BY (y, x) INTO 32 BUCKETS")
        sql(
          s"INSERT INTO types SELECT if(v = 9, null, $expression), 1, v " +
            "FROM (SELECT id AS v FROM range(0, 10, 1, 1))")
        val all = spark.table("types").collect().groupBy(row => text(row.get(0)))
        assert(all.size >= 3, dataType)
        val values = all.values.toSeq
        // A scan for each value, all in one query.
        val df = values.zipWithIndex
          .map { case (rows, i) =>
            val equal = col("y") === 1 && col("x") <=> lit(rows.head.get(0))
            spark.table("types").where(equal).select(col("v"), lit(i))
          }
          .reduce(_ union _)
        val found = df.collect().map(row => (row.getInt(1), row.getLong(0)))
        val expected = for ((rows, i) <- values.zipWithIndex; row <- rows) yield (i, row.getLong(2))
        assert(found.sorted === expected.sorted, dataType)
        assert(scans(df).size === values.size)
        scans(df).map(bucketsRead).foreach { read =>
          // The padding of char(n) is an expression over the column. Files may change timestamps.
          if (Seq("char(4)", "timestamp").contains(dataType)) assert(read.size > 1)
          else assert(read.size === 1, dataType)
        }
      }
    }
  }

  test("zeros, NaN and nested columns") {
    withTable("z", "n") {
      val doubles = Seq("-0.0D", "0.0D", "double('NaN')", "1.0D").map(x => s"($x, 1)")
      save(table("x, y", doubles.mkString(", ")), "z", 16, "x", "y")
      for ((x, count) <- Seq("0.0D" -> 2, "-0.0D" -> 2, "double('NaN')" -> 1, "1.0D" -> 1)) {
        val df = sql(s"SELECT * FROM z WHERE x = $x AND y = 1")
        assert(checkAnswer(df).size === count)
        assert(scans(df).head.optionalBucketSet.isDefined === (count == 1))
      }
      val nested = spark.range(20).selectExpr("struct(id % 5 AS f) AS s", "id % 3 AS y", "id AS v")
      save(nested, "n", 16, "s", "y")
      val df = sql("SELECT * FROM n WHERE s = named_struct('f', 2L) AND y = 1")
      assert(checkAnswer(df).nonEmpty)
      assert(scans(df).head.optionalBucketSet.isEmpty)
      assert(
        explained(df, "n").why.contains(
          "equal values of a bucket column may be in several buckets"))
    }
  }

  test("keeps Spark's pruning by one column, and ignores metadata columns") {
    withTable("one", "m") {
      save(rows, "one", 16, "b")
      val df = sql("SELECT * FROM one WHERE b IN ('b1', 'b2')")
      checkAnswer(df)
      withSQLConf(Off) {
        val off = again(df)
        assert(scans(off).head.optionalBucketSet === scans(df).head.optionalBucketSet)
      }
      save(rows.withColumnRenamed("b", "file_name"), "m", 16, "file_name")
      val name = sql("SELECT _metadata.file_name FROM m LIMIT 1").head().getString(0)
      val metadata = sql(s"SELECT * FROM m WHERE _metadata.file_name = '$name'")
      assert(checkAnswer(metadata).nonEmpty)
      assert(scans(metadata).head.optionalBucketSet.isEmpty)
    }
  }

  test("partitions, appends, and files whose names are no buckets'", Slow) {
    withTable("p") {
      for (mode <- Seq("overwrite", "append")) {
        rows
          .withColumn("day", expr("v % 3"))
          .write
          .partitionBy("day")
          .bucketBy(8, "a", "b")
          .mode(mode)
          .saveAsTable("p")
      }
      val df = sql("SELECT * FROM p WHERE day < 2 AND a = 4 AND b = 'b4'")
      assert(checkAnswer(df).nonEmpty)
      assert(bucketsRead(df).size === 1)
      assert(explained(df, "p").read === 1)

      val location = spark.sessionState.catalog
        .getTableMetadata(TableIdentifier("p"))
        .location
      val folder = new File(location.getPath, "day=0")
      val files = folder.listFiles().filter(_.getName.endsWith(".parquet"))
      // Its rows are of no bucket that a condition could choose, but Spark reads them where it does
      // not read by the bucket.
      rename(files.head, 99999)
      sql("REFRESH TABLE p")
      val again = sql("SELECT * FROM p WHERE a = 4 AND b = 'b4'")
      checkAnswer(again)
      assert(filesRead(scans(again).head).exists(_.contains("_99999")))
    }
  }

  test("files whose names are no buckets', in a table that is read as if it had fewer buckets") {
    withTable("p", "u") {
      save(rows.coalesce(1), "p", 6, "a", "b")
      save(rows.coalesce(1).withColumnRenamed("v", "w"), "u", 3, "a", "b")
      val bucket = spark
        .range(1)
        .select(pmod(hash(lit(4), lit("b4")), lit(6)))
        .head()
        .getInt(0)
      val folder =
        new File(spark.sessionState.catalog.getTableMetadata(TableIdentifier("p")).location.getPath)
      val file = folder
        .listFiles()
        .find(f =>
          f.getName.endsWith(".parquet") && BucketingUtils.getBucketId(f.getName).contains(bucket))
      rename(file.get, bucket + 6)
      sql("REFRESH TABLE p")
      withSQLConf(
        SQLConf.COALESCE_BUCKETS_IN_JOIN_ENABLED.key -> "true",
        SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1") {
        val df = sql("SELECT * FROM p JOIN u USING (a, b) WHERE a = 4 AND b = 'b4'")
        assert(checkAnswer(df).nonEmpty)
        assert(scans(df).map(_.optionalNumCoalescedBuckets) === Seq(Some(3), None))
        // The file shows that the table has more buckets than it declares.
        assert(scans(df).map(_.optionalBucketSet.isDefined) === Seq(false, true))
      }
    }
  }

  /** Gives a file of a table the name of another bucket. */
  private def rename(file: File, bucket: Int): Unit = {
    val renamed = file.getName.replaceAll("_\\d{5}", f"_$bucket%05d")
    assert(file.renameTo(new File(file.getParentFile, renamed)))
    val crc = new File(file.getParentFile, s".${file.getName}.crc")
    if (crc.exists) crc.renameTo(new File(file.getParentFile, s".$renamed.crc"))
  }

  test("a plan without bucketed tables does not mention buckets") {
    assert(explained(spark.range(3).toDF("a").where("a = 1")).isEmpty)
    assert(checkAnswer(spark.range(3).toDF("a").where("a = 1")) === Seq(Row(1L)))
  }
}
