package io.github.skewext.bucket

import java.io.File

import io.github.skewext.MultiJoinTest
import io.github.skewext.bucket.files.SortedFilesExec

import org.apache.spark.SparkConf
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.execution.datasources.BucketingUtils
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.execution.{FileSourceScanExec, SortExec}
import org.apache.spark.sql.{DataFrame, Row}

/** Tables with sorted buckets, and what becomes of queries that read them. */
trait SortedBucketTest extends MultiJoinTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set("spark.sql.autoBroadcastJoinThreshold", "-1")
      .set("spark.sql.sources.parallelPartitionDiscovery.threshold", "10000")
      // Compiling takes longer than running such queries; see `compiled`.
      .set("spark.sql.codegen.wholeStage", "false")
      .set("spark.sql.codegen.factoryMode", "NO_CODEGEN")

  /** As queries usually run: scans give columns, and what is above is compiled. */
  protected def compiled(f: => Unit): Unit =
    withSQLConf(
      "spark.sql.codegen.wholeStage" -> "true",
      "spark.sql.codegen.factoryMode" -> "FALLBACK")(f)

  protected def write(
      df: DataFrame,
      table: String,
      by: Seq[String],
      buckets: Int = 3,
      sortBy: Option[Seq[String]] = None,
      mode: String = "error",
      partitionBy: Seq[String] = Nil,
      format: String = null,
      options: Map[String, String] = Map.empty): WrittenBuckets =
    new BucketedWriter(
      df,
      BucketedWrite(
        table,
        by,
        buckets,
        sortBy.getOrElse(by),
        mode,
        partitionBy,
        Option(format),
        options)).write()

  protected def plan[T](df: DataFrame)(
      f: PartialFunction[org.apache.spark.sql.execution.SparkPlan, T]): Seq[T] =
    collectWithSubqueries(df.queryExecution.executedPlan)(f)

  protected def inFileOrder(df: DataFrame): Seq[SortedFilesExec] =
    plan(df) { case s: SortedFilesExec => s }

  protected def sorts(df: DataFrame): Int = plan(df) { case s: SortExec => s }.size

  protected def shuffles(df: DataFrame): Int = plan(df) { case e: ShuffleExchangeLike => e }.size

  protected def reasons(df: DataFrame): Seq[FileOrderReason] =
    plan(df) { case scan: FileSourceScanExec => FileOrderReason.of(scan) }.flatten
      .map(_.reason)

  /** Runs the query, and compares it with Spark without us; says what is in its plan. */
  protected def check(df: DataFrame): Seq[Row] = {
    val rows = df.collect().toSeq
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    rows
  }

  protected def checkInFileOrder(df: DataFrame, number: Int): Unit = {
    check(df)
    assert(inFileOrder(df).size === number, df.queryExecution.executedPlan)
    assert(sorts(df) === 0, df.queryExecution.executedPlan)
    assert(shuffles(df) === 0, df.queryExecution.executedPlan)
    assert(reasons(df).isEmpty)
  }

  protected def checkSorted(df: DataFrame, reason: FileOrderReason*): Unit = {
    check(df)
    assert(inFileOrder(df).isEmpty, df.queryExecution.executedPlan)
    assert(reasons(df).distinct === reason, df.queryExecution.executedPlan)
  }

  /** The data files of a table. */
  protected def files(table: String): Seq[File] = {
    def below(file: File): Seq[File] =
      if (file.isDirectory) file.listFiles().toSeq.flatMap(below) else Seq(file)
    val location =
      spark.sessionState.catalog.getTableMetadata(TableIdentifier(table)).location
    below(new File(location)).filter(_.getName.startsWith("part-"))
  }

  /** How many files each bucket has in each folder. */
  protected def filesPerBucket(table: String): Map[(String, Int), Int] =
    files(table)
      .groupBy(file => (file.getParent, BucketingUtils.getBucketId(file.getName).get))
      .map { case (bucket, found) => bucket -> found.size }
}
