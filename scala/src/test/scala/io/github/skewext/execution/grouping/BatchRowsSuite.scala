package io.github.skewext.execution.grouping

import io.github.skewext.MultiJoinTest

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.{ColumnarToRowExec, WholeStageCodegenExec}
import org.apache.spark.sql.functions._

/** Rows that are made of a scan's columns by us are, byte by byte, those that Spark makes. */
class BatchRowsSuite extends MultiJoinTest {

  // Interpreted, Spark does not read files as batches of columns.
  override protected def generatesCode: Boolean = true

  /** Of the types that are known, and of every width; some null, and some never. */
  private def wide(rows: Int): DataFrame = {
    val n = col("id")
    def some(e: org.apache.spark.sql.Column, every: Int) = when(n % every =!= 0, e)
    spark
      .range(0, rows, 1, 1)
      .select(
        n.as("a"),
        some(n.cast("int"), 3).as("b"),
        (n % 100).cast("short").as("c"),
        some((n % 100 - 50).cast("byte"), 5).as("d"),
        (n % 3 === 0).as("e"),
        some(when(n % 7 === 1, -0.0).otherwise(n / 7), 4).as("f"),
        when(n % 11 === 1, Float.NaN).otherwise((n / 3).cast("float")).as("g"),
        // In a dictionary; those of other files and row groups are others.
        concat(lit("v" * 3), (floor(n / 500) * 1000 + n % 40).cast("string")).as("h"),
        some(when(n % 13 === 2, "").otherwise((n % 17).cast("string")), 6).as("i"),
        // Too many for a dictionary.
        repeat(md5(n.cast("string")), 3).as("j"),
        some(md5((n % 50).cast("string")).cast("binary"), 3).as("k"),
        date_add(lit("1999-01-01").cast("date"), (n % 1000).cast("int")).as("l"),
        some(timestamp_seconds(n * 1000), 9).as("m"),
        (n / 10).cast("decimal(7, 1)").as("o"),
        some((n / 10).cast("decimal(18, 3)"), 8).as("p"),
        lit(null).cast("string").as("q"),
        timestamp_seconds(n).cast("timestamp_ntz").as("r"))
  }

  private def rowsOfScan(df: DataFrame): Option[Seq[InternalRow]] =
    BatchRows.of(df.queryExecution.executedPlan).map(_.map(_.copy()).collect().toSeq)

  private def check(df: DataFrame): Unit = {
    val rows = rowsOfScan(df).getOrElse(fail(s"Not a scan of batches: ${df.queryExecution}"))
    val expected = df.queryExecution.executedPlan.execute().map(_.copy()).collect().toSeq
    assert(rows.size === expected.size && rows.nonEmpty)
    rows.zip(expected).foreach { case (row, other) =>
      assert(row.isInstanceOf[UnsafeRow] && row === other)
    }
  }

  for (format <- Seq("parquet", "orc")) {
    test(s"all types, in one batch and in several, $format") {
      for (rows <- Seq(1, 6000); batch <- Seq("4096", "100")) withTempPath { path =>
        wide(rows).write.format(format).save(path.getPath)
        withSQLConf(
          "spark.sql.parquet.columnarReaderBatchSize" -> batch,
          "spark.sql.orc.columnarReaderBatchSize" -> batch) {
          val df = spark.read.format(format).load(path.getPath)
          check(df)
          check(df.select("a", "h"))
          check(df.select("j"))
        }
      }
    }
  }

  test("a dictionary for every row group, and one that is given up within it") {
    for ((block, dictionary) <- Seq((20000, 1 << 20), (200000, 1000), (1 << 27, 1 << 20)))
      withTempPath { path =>
        wide(8000).write
          .option("parquet.block.size", block.toLong)
          .option("parquet.page.size", 1000L)
          .option("parquet.dictionary.page.size", dictionary.toLong)
          .option("parquet.block.size.row.check.min", 10L)
          .option("parquet.page.size.row.check.min", 10L)
          .parquet(path.getPath)
        check(spark.read.parquet(path.getPath))
      }
  }

  test("columns of partitions, and of several files in a task") {
    withTempPath { path =>
      wide(3000).withColumn("part", col("a") % 3).write.partitionBy("part").parquet(path.getPath)
      check(spark.read.parquet(path.getPath))
      check(spark.read.parquet(path.getPath).select("h", "part"))
    }
  }

  test("plans that are not a scan of simple columns") {
    withTempPath { path =>
      wide(100).withColumn("x", array("a")).write.parquet(path.getPath)
      val df = spark.read.parquet(path.getPath)
      assert(rowsOfScan(df).isEmpty)
      assert(rowsOfScan(df.drop("x").where("a > 3")).isEmpty)
      assert(rowsOfScan(df.selectExpr("a + 1")).isEmpty)
      assert(rowsOfScan(spark.range(3).toDF()).isEmpty)
      withSQLConf("spark.sql.parquet.enableVectorizedReader" -> "false") {
        assert(rowsOfScan(spark.read.parquet(path.getPath).drop("x")).isEmpty)
      }
      check(spark.read.parquet(path.getPath).drop("x"))
    }
  }

  test("sorted tables are read so") {
    withTable("t0", "t1") {
      for (i <- 0 until 2) {
        wide(300)
          .select(col("b").as("k"), col("h").as(s"h$i"), col("f").as(s"f$i"))
          .write
          .bucketBy(3, "k")
          .sortBy("k")
          .saveAsTable(s"t$i")
      }
      def joined = fullJoin("k")(spark.table("t0"), spark.table("t1"))
      def rowsOfSpark(df: DataFrame): Seq[Boolean] = {
        val stages = collect(df.queryExecution.executedPlan) {
          case stage @ WholeStageCodegenExec(rows: ColumnarToRowExec) => (stage, rows)
        }
        assert(stages.map(_._2.metrics("numOutputRows").value) === Seq(300, 300))
        assert(stages.forall(_._2.metrics("numInputBatches").value >= 3))
        stages.map(_._1.metrics("pipelineTime").value > 0)
      }
      withSQLConf("spark.sql.legacy.bucketedTableScan.outputOrdering" -> "true") {
        val df = joined
        checkJoin(df)
        assert(operator(df).comesOrdered)
        assert(rowsOfSpark(df) === Seq(false, false))
      }
    }
  }
}
