package io.github.skewext.merge

import io.delta.sql.DeltaSparkSessionExtension
import io.github.skewext.SkewExtensions
import io.github.skewext.bucket.{BucketedWrite, BucketedWriter}
import org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions

import org.apache.spark.SparkConf
import org.apache.spark.sql.delta.catalog.DeltaCatalog
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{AnalysisException, DataFrame, Row}

/**
 * A session with Delta's and Iceberg's extensions: what is done to tables is the same without ours.
 *
 * @param late whether ours is registered when the session runs, and so splits nothing
 */
abstract class LakehouseTest(extensions: Seq[Class[_]], late: Boolean = false) extends MergeTest {

  /** It fails at an UPDATE of a Delta table then, with and without ours. */
  private val isIcebergsBeforeDeltas =
    extensions.indexOf(classOf[IcebergSparkSessionExtensions]) <
      extensions.indexOf(classOf[DeltaSparkSessionExtension])

  override protected def sparkConf: SparkConf = super.sparkConf
    .set("spark.sql.extensions", extensions.map(_.getName).mkString(","))
    .set("spark.sql.catalog.spark_catalog", classOf[DeltaCatalog].getName)
    .set("spark.databricks.delta.snapshotPartitions", "2")
    // What Delta does after each commit in a test, to test itself.
    .set("spark.databricks.delta.allFilesInCrc.enabled", "false")
    .set("spark.databricks.delta.incremental.commit.forceVerifyInTests", "false")

  private val Hot = 1000L

  /** Keys of which one is on the most rows, and as many rows again with other keys, of four tasks. */
  private def rows(n: Long, first: Long, isHot: Boolean): DataFrame = spark
    .range(0, n, 1, 4)
    .select(
      (if (isHot) when(col("id") % 14 > 1, Hot).otherwise(col("id") + first)
       else col("id") + first).as("k"),
      col("id").as("v"),
      md5(col("id").cast("string").cast("binary")).as("txt"))

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    if (late) SkewExtensions.register(spark)
    rows(840, 0, isHot = true).createOrReplaceTempView("target")
    rows(60, 20, isHot = false)
      .union(spark.range(1).selectExpr(s"${Hot}L", "7L", "'hot'"))
      .createOrReplaceTempView("source")
  }

  protected def merge(table: String): String =
    s"""MERGE INTO $table t USING source s ON t.k = s.k
       |WHEN MATCHED AND s.v % 5 = 0 THEN DELETE
       |WHEN MATCHED THEN UPDATE SET v = s.v, txt = s.txt
       |WHEN NOT MATCHED THEN INSERT (k, v, txt) VALUES (s.k, s.v, s.txt)
       |WHEN NOT MATCHED BY SOURCE AND t.k % 3 = 0 THEN UPDATE SET v = -1""".stripMargin

  /** What is asked of a table, with and without us. */
  protected def checkSame(what: String)(ask: => Seq[Row]): Unit = {
    val ours = ask
    var stocks = Seq.empty[Row]
    withSQLConf(Off) {
      stocks = ask
    }
    assertSameRows(ours, stocks, s"$what with skewext off")
  }

  /**
   * The steps, done to a table with us and to another one without.
   *
   * @param fails which of them fail, with us and without
   */
  protected def doBoth(name: String, fails: String => Boolean = _ => false)(
      steps: (String => String)*): Seq[SparkPlan] = {
    def run(table: String): Unit = steps.map(_(table)).foreach { sql =>
      if (fails(sql)) intercept[Throwable](spark.sql(sql)) else spark.sql(sql)
    }
    val plans = plansOf(run(s"${name}_on"))
    withSQLConf(Off)(run(s"${name}_off"))
    plans
  }

  protected def assertSame(query: String => DataFrame, name: String): Unit =
    assertSameRows(
      query(s"${name}_on").collect(),
      query(s"${name}_off").collect(),
      "what was done with skewext off")

  /** Whether all that docs/reliability.md names is done to tables, and not only what joins. */
  protected def isComplete: Boolean = testAll

  protected def testDelta(vectors: Boolean): Unit =
    test(s"Delta, deletion vectors: $vectors", Slow) {
      val name = s"delta_$vectors"
      withTable(s"${name}_on", s"${name}_off") {
        def fails(sql: String) = isIcebergsBeforeDeltas && sql.startsWith("UPDATE")
        val joining = Seq[String => String](
          t => s"""CREATE TABLE $t USING delta TBLPROPERTIES (
               |  delta.enableChangeDataFeed = true, delta.enableDeletionVectors = $vectors
               |) AS SELECT /*+ REPARTITION(4) */ * FROM target""".stripMargin,
          merge,
          t => s"UPDATE $t SET v = v + 1 WHERE k % 4 = 1",
          t => s"DELETE FROM $t WHERE k % 7 = 3")
        val others = Seq[String => String](
          t => s"INSERT INTO $t SELECT k + 5000, v, txt FROM source",
          t => s"OPTIMIZE $t",
          t => s"OPTIMIZE $t ZORDER BY (k)")
        val plans = doBoth(name, fails)(joining ++ others.filter(_ => isComplete): _*)
        assert(plans.exists(isSplitByUs) === !late, plans)
        assertSame(spark.table, name)
        if (isComplete) checkHistory(name)
      }
    }

  private def checkHistory(name: String): Unit = {
    assertSame(t => spark.sql(s"SELECT * FROM $t VERSION AS OF 1"), name)
    assertSame(
      t =>
        spark.sql(s"SELECT k, v, txt, _change_type, _commit_version FROM table_changes('$t', 1)"),
      name)
    assertSame(
      t =>
        spark
          .sql(s"DESCRIBE HISTORY $t")
          .select(
            col("version"),
            explode(map_filter(col("operationMetrics"), (k, _) => k.contains("Rows")))),
      name)
    checkJoinOf(name)
  }

  // Of the other table a few rows: half a million of the hot key are none the better a test.
  private def checkJoinOf(name: String): Unit = checkSame("a join of it")(
    spark
      .sql(s"""SELECT * FROM ${name}_on FULL JOIN source USING (k)
              |FULL JOIN (SELECT * FROM target WHERE v < 28) AS t USING (k)""".stripMargin)
      .collect()
      .toSeq)

  protected def testIceberg(mode: String): Unit =
    test(s"Iceberg, $mode", Slow) {
      val name = s"ice.db.${mode.replace('-', '_')}"
      for (t <- Seq(s"${name}_on", s"${name}_off")) {
        write(spark.table("target"), t)
        setMode(t, mode)
      }
      val first = Seq("on", "off").map { each =>
        s"${name}_$each" -> iceberg(s"${name}_$each").currentSnapshot().snapshotId()
      }.toMap
      val joining = Seq[String => String](
        merge,
        t => s"UPDATE $t SET v = v + 1 WHERE k IN (SELECT k FROM source WHERE v % 2 = 0)",
        t => s"DELETE FROM $t WHERE k IN (SELECT k + 3 FROM source)")
      val others = Seq[String => String](
        t => s"INSERT INTO $t SELECT k + 5000, v, txt FROM source",
        t => s"CALL ice.system.rewrite_data_files(table => '${t.stripPrefix("ice.")}')")
      doBoth(name)(joining ++ others.filter(_ => isComplete): _*)
      assertSame(spark.table, name)
      if (isComplete) {
        // Before files were written anew a row may be in another file than without us.
        assert(rowMetrics(s"${name}_on") === rowMetrics(s"${name}_off"))
        assertSame(t => spark.sql(s"SELECT * FROM $t VERSION AS OF ${first(t)}"), name)
        checkJoinOf(name)
      }
    }
}

class LakehouseSuite
    extends LakehouseTest(
      Seq(
        classOf[SkewExtensions],
        classOf[DeltaSparkSessionExtension],
        classOf[IcebergSparkSessionExtensions])) {
  // In `make test` the other order has one of Iceberg's.
  if (testAll) Seq(true, false).foreach(testDelta) else testDelta(vectors = true)
  slow(CopyOnWrite).foreach(testIceberg)
  if (testAll) testIceberg(MergeOnRead)

  test("a split join writes the files of Spark's split, and one for its unmatched rows", Slow) {
    def files(table: String, using: String, how: String): (Seq[SparkPlan], Long) = {
      skewed(0, 800, hot = 2, maps = 8)
        .join(skewed(1, 60), Seq("k"), how)
        .createOrReplaceTempView("joined")
      spark.sql(s"DROP TABLE IF EXISTS $table")
      val plans = plansOf(spark.sql(s"CREATE TABLE $table USING $using AS SELECT * FROM joined"))
      val listed =
        if (using == "delta") spark.sql(s"DESCRIBE DETAIL $table").select("numFiles")
        else spark.table(s"$table.files").agg(count("*"))
      (plans, listed.head().getLong(0))
    }
    withTable("files") {
      for ((table, using) <- Seq("files" -> "delta", "ice.db.files" -> "iceberg")) {
        var stocks = 0L
        withSQLConf(Off) {
          stocks = files(table, using, "left")._2
        }
        val (plans, ours) = files(table, using, "full")
        assert(plans.exists(isSplitByUs), plans)
        // Files keep the advisory size; a left join that Spark splits has no task for unmatched rows.
        assert(ours <= stocks + 1)
        assert(ours > shufflePartitions)
      }
    }
  }

  test("tables of Delta and Iceberg are not written by bucket, and stay what they are", Slow) {
    withTable("kept") {
      spark.sql("CREATE TABLE kept USING delta AS SELECT 1L AS k, 2L AS v")
      write(spark.sql("SELECT 1L AS k, 2L AS v"), "ice.db.kept")
      val path = spark.sql("DESCRIBE DETAIL kept").select("location").head().getString(0)
      for {
        table <- Seq(
          "kept",
          "default.kept",
          "spark_catalog.default.kept",
          s"delta.`$path`",
          "ice.db.kept")
        mode <- Seq("overwrite", "append", "error", "ignore")
      } {
        val writer = new BucketedWriter(
          spark.sql("SELECT 3L AS k, 4L AS v"),
          BucketedWrite(table, Seq("k"), 2, sortBy = Nil, mode))
        val error = intercept[AnalysisException](writer.write())
        assert(error.getMessage.contains("Spark's own"), table)
      }
      for (table <- Seq("kept", "ice.db.kept")) {
        assert(spark.table(table).collect().toSeq === Seq(Row(1L, 2L)))
      }
      assert(spark.sql("DESCRIBE HISTORY kept").select("version").collect().toSeq === Seq(Row(0L)))
      assert(iceberg("ice.db.kept").history().size() === 1)
    }
  }
}

/** Where their order says whose rules come first. */
class LakehouseLastSuite
    extends LakehouseTest(
      Seq(
        classOf[DeltaSparkSessionExtension],
        classOf[IcebergSparkSessionExtensions],
        classOf[SkewExtensions])) {
  testIceberg(MergeOnRead)
  if (testAll) testDelta(vectors = false)
}

/** One of the orders that only `make test-all` has: the statements that join, and their rows. */
abstract class LakehouseOrderTest(extensions: Class[_]*) extends LakehouseTest(extensions) {

  override protected def isComplete: Boolean = false

  if (testAll) {
    testIceberg(CopyOnWrite)
    testDelta(vectors = true)
  }
}

class LakehouseBetweenSuite
    extends LakehouseOrderTest(
      classOf[DeltaSparkSessionExtension],
      classOf[SkewExtensions],
      classOf[IcebergSparkSessionExtensions])

class LakehouseIcebergDeltaSuite
    extends LakehouseOrderTest(
      classOf[SkewExtensions],
      classOf[IcebergSparkSessionExtensions],
      classOf[DeltaSparkSessionExtension])

class LakehouseIcebergFirstSuite
    extends LakehouseOrderTest(
      classOf[IcebergSparkSessionExtensions],
      classOf[SkewExtensions],
      classOf[DeltaSparkSessionExtension])

class LakehouseIcebergDeltaLastSuite
    extends LakehouseOrderTest(
      classOf[IcebergSparkSessionExtensions],
      classOf[DeltaSparkSessionExtension],
      classOf[SkewExtensions])

/** Registered late, it has the rules of the optimizer and the strategies, and splits nothing. */
class LakehouseLateSuite
    extends LakehouseTest(
      Seq(classOf[DeltaSparkSessionExtension], classOf[IcebergSparkSessionExtensions]),
      late = true) {
  slow(() => testIceberg(CopyOnWrite), () => testDelta(vectors = false)).foreach(_())
}
