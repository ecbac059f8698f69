package io.github.skewext.bucket

import io.github.skewext.MultiJoinTest
import io.github.skewext.explain.{ExplainedScan, Explainer}

import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.{BucketingUtils, FileScanRDD}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.{DataFrame, Row}

/** Bucketed tables, and what is read of them. */
trait BucketScanTest extends MultiJoinTest {

  // Compiling costs more than running such small queries.
  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
  }

  protected val Static: (String, String) = SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false"

  protected def save(df: DataFrame, name: String, buckets: Int, by: String*): DataFrame = {
    df.write.bucketBy(buckets, by.head, by.tail: _*).saveAsTable(name)
    spark.table(name)
  }

  protected def scans(df: DataFrame): Seq[FileSourceScanExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case s: FileSourceScanExec => s }

  /** Names of the files that tasks of the scan open. */
  protected def filesRead(scan: FileSourceScanExec): Seq[String] = scan.inputRDD match {
    case files: FileScanRDD => files.filePartitions.flatMap(_.files).map(_.toPath.getName)
    case other => fail(s"not files: $other")
  }

  protected def bucketsRead(scan: FileSourceScanExec): Set[Int] =
    filesRead(scan).flatMap(BucketingUtils.getBucketId(_)).toSet

  /** The buckets that the one scan of a query reads. */
  protected def bucketsRead(df: DataFrame): Set[Int] = scans(df) match {
    case Seq(one) => bucketsRead(one)
    case several => fail(s"${several.size} scans in ${df.queryExecution.executedPlan}")
  }

  /** Runs the query, and compares with what Spark gives alone. */
  protected def checkAnswer(df: DataFrame): Seq[Row] = {
    val rows = df.collect().toSeq
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    rows
  }

  protected def explained(df: DataFrame): Seq[ExplainedScan] =
    SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution)).scans

  protected def explained(df: DataFrame, source: String): ExplainedScan =
    explained(df).find(_.source.endsWith(s".$source")).get
}
