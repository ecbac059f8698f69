package io.github.skewext.merge

import scala.collection.JavaConverters._

import io.github.skewext.SkewExtensions
import io.github.skewext.explain.{ExplainedSkew, Explainer}
import io.github.skewext.skew.SkewTest
import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.skew.run.SplitJoinExec
import org.apache.iceberg.Table
import org.apache.iceberg.data.IcebergGenerics
import org.apache.iceberg.inmemory.InMemoryCatalog
import org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions
import org.apache.iceberg.spark.{Spark3Util, SparkCatalog}

import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.execution.{CommandResultExec, SparkPlan}
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.{SparkConf, SparkThrowable}

/** Tables of Iceberg, in a catalog of their own, beside the extension. */
trait MergeTest extends SkewTest {

  protected val CopyOnWrite = "copy-on-write"
  protected val MergeOnRead = "merge-on-read"

  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set(
        "spark.sql.extensions",
        Seq(classOf[SkewExtensions], classOf[IcebergSparkSessionExtensions])
          .map(_.getName)
          .mkString(","))
      .set("spark.sql.catalog.ice", classOf[SparkCatalog].getName)
      // To make a file costs more than such a MERGE, as Hadoop starts a program to set its mode.
      .set("spark.sql.catalog.ice.catalog-impl", classOf[InMemoryCatalog].getName)
      // Compiling takes longer than running such queries.
      .set("spark.sql.codegen.wholeStage", "false")
      .set("spark.sql.codegen.factoryMode", "NO_CODEGEN")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.sql("CREATE NAMESPACE ice.db")
  }

  /** A file of each task, each read by a task of its own. */
  protected def write(df: DataFrame, name: String, distribution: String = "none"): Unit =
    df.writeTo(name)
      .using("iceberg")
      .tableProperty("format-version", "2")
      // For each file of Parquet that is not Hadoop's, Iceberg reads all settings of Hadoop anew.
      .tableProperty("write.format.default", "avro")
      .tableProperty("write.distribution-mode", "none")
      .tableProperty("write.merge.distribution-mode", distribution)
      .tableProperty("read.split.target-size", "1000000")
      .tableProperty("read.split.open-file-cost", "1000000")
      .tableProperty("read.split.adaptive-size.enabled", "false")
      .createOrReplace()

  protected def iceberg(name: String): Table = Spark3Util.loadIcebergTable(spark, name)

  protected def setMode(name: String, mode: String): Unit =
    iceberg(name).updateProperties().set("write.merge.mode", mode).commit()

  /** What the last write of a table says that it has done to rows. */
  protected def rowMetrics(name: String): Map[String, String] =
    iceberg(name)
      .currentSnapshot()
      .summary()
      .asScala
      .filter { case (metric, _) => metric.endsWith("records") || metric.endsWith("deletes") }
      .toMap

  /** Runs a MERGE; gives the plan that did it. */
  protected def runMerge(sql: String): DataFrame = {
    val df = spark.sql(sql)
    assert(planOf(df).children.nonEmpty)
    df
  }

  protected def planOf(merge: DataFrame): SparkPlan =
    merge.queryExecution.executedPlan match {
      case result: CommandResultExec => result.commandPhysicalPlan
      case other => fail(s"not a command: $other")
    }

  /**
   * Whether partitions of the MERGE's join were split, by Spark or by us. That of the subquery which
   * finds the files that are concerned may be, either side of it.
   */
  protected def isSplitBySpark(plan: SparkPlan): Boolean =
    collect(plan) { case join: ShuffledJoin if join.isSkewJoin => join }.nonEmpty

  protected def isSplitByUs(plan: SparkPlan): Boolean =
    collect(plan) { case join: SplitJoinExec => join }.nonEmpty

  /** Whether Spark finds that rows of the target match twice. Other errors are errors. */
  protected def findsTwice(body: => Any): Boolean =
    try {
      body
      false
    } catch {
      case e: Exception if Iterator.iterate[Throwable](e)(_.getCause).takeWhile(_ != null).exists {
            case known: SparkThrowable => known.getErrorClass == "MERGE_CARDINALITY_VIOLATION"
            case _ => false
          } =>
        true
    }

  protected def rowsOf(name: String): Seq[Row] = spark.table(name).collect().toSeq

  /** The same by Iceberg's own reader, which takes a tenth of a query's time. */
  protected def rowsByIceberg(name: String): Seq[Row] = {
    val table = iceberg(name)
    // Where rows have been deleted it gives their places in files as well.
    val columns = table.schema.columns.asScala.indices
    val records = IcebergGenerics.read(table).build()
    try records.asScala.map(r => Row(columns.map(r.get(_)): _*)).toList
    finally records.close()
  }

  /** Does something with a table that is then as it was before. */
  protected def restoring[T](table: String)(body: => T): T = {
    val before = iceberg(table).currentSnapshot().snapshotId()
    try body
    finally iceberg(table).manageSnapshots().rollbackTo(before).commit()
  }

  /** Contents and metrics after the MERGE, and the query. */
  protected def merged(table: String, sql: String): (Seq[Row], Map[String, String], DataFrame) =
    restoring(table) {
      val df = runMerge(sql)
      (rowsByIceberg(table), rowMetrics(table), df)
    }

  protected def withSkewJoinsOff[T](body: => T): T = {
    var result: Option[T] = None
    withSQLConf(Off, "spark.sql.adaptive.skewJoin.enabled" -> "false") {
      result = Some(body)
    }
    result.get
  }

  /** A legal MERGE does what it does without us. */
  protected def checkLegal(table: String, sql: String): DataFrame = {
    val (rows, metrics, df) = merged(table, sql)
    val (expected, expectedMetrics, _) = withSkewJoinsOff(merged(table, sql))
    assertSameRows(rows, expected, "the MERGE without skew joins")
    assert(metrics === expectedMetrics)
    df
  }

  protected def reasonsIn(plan: SparkPlan): Seq[SkewReason] =
    collect(plan) { case node => SkewReason.of(node).map(_.reason) }.flatten

  /** What is said of the query's joins. */
  protected def explained(df: DataFrame): Seq[ExplainedSkew] =
    SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution)).joins.flatMap(_.skew)
}
