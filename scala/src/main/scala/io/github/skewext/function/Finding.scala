package io.github.skewext.function

import io.github.skewext.bucket.BucketedWriter
import io.github.skewext.explain.report.{QueryReport, SkewReport}
import io.github.skewext.explain.{Doctor, Explainer, ExplanationJson}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.unsafe.types.UTF8String

/** The result of a table function, computed when its rows are read. */
private[function] trait Finding {

  /** The rows, with the columns of the relation. */
  def find(session: SparkSession, inputs: Seq[DataFrame]): Seq[InternalRow]
}

/** A result that is one text of JSON. */
private[function] abstract class JsonFinding(column: String) extends Finding {

  protected def json(session: SparkSession, inputs: Seq[DataFrame]): String

  val output: StructType = new StructType().add(column, StringType, nullable = false)

  override def find(session: SparkSession, inputs: Seq[DataFrame]): Seq[InternalRow] =
    Seq(InternalRow(UTF8String.fromString(json(session, inputs))))
}

/** The explanation of a query's joins. */
private[function] case object ExplanationFinding extends JsonFinding("explanation") {
  override protected def json(session: SparkSession, inputs: Seq[DataFrame]): String =
    ExplanationJson.withEntries(Explainer.explain(inputs.head.queryExecution))
}

/** The parts of skewext in the session. */
private[function] case object DoctorFinding extends JsonFinding("parts") {
  override protected def json(session: SparkSession, inputs: Seq[DataFrame]): String =
    Doctor.json(session)
}

/** The report on a query's tasks. */
private[function] case class QueryFinding(query: Option[Long]) extends JsonFinding("report") {
  override protected def json(session: SparkSession, inputs: Seq[DataFrame]): String =
    QueryReport.of(session, query)
}

/** The skew of a key, with a row for each key with many rows. */
private[function] case class SkewFinding(
    keys: Seq[Seq[String]],
    partitions: Option[Int],
    minShare: Double,
    withBytes: Boolean)
    extends Finding {

  override def find(session: SparkSession, inputs: Seq[DataFrame]): Seq[InternalRow] =
    SkewReport.of(session, inputs, keys, partitions, minShare, withBytes).rows
}

/** The write of a bucketed table, and its contents. Each execution plan writes once. */
private[function] case class WriteFinding(
    table: String,
    by: Seq[String],
    buckets: Int,
    sortBy: Seq[String],
    mode: String,
    partitionBy: Seq[String],
    format: Option[String],
    options: Map[String, String])
    extends JsonFinding("written") {

  override protected def json(session: SparkSession, inputs: Seq[DataFrame]): String = {
    val writer = new BucketedWriter(
      inputs.head,
      table,
      format,
      by,
      buckets,
      sortBy,
      mode,
      partitionBy,
      options)
    writer.write().json
  }

  /** Without the options, which may have secrets, because plans and Spark's UI show this text. */
  override def toString: String =
    s"WriteFinding($table, [${by.mkString(", ")}], $buckets, $mode)"
}
