package io.github.skewext.function

import io.github.skewext.bucket.BucketedWriter
import io.github.skewext.explain.report.{QueryReport, SkewReport}
import io.github.skewext.explain.{Doctor, Explainer}
import io.github.skewext.sketch.KeyPass

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
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

  val output: Seq[StructField] = Seq(StructField(column, StringType, nullable = false))

  override def find(session: SparkSession, inputs: Seq[DataFrame]): Seq[InternalRow] =
    Seq(InternalRow(UTF8String.fromString(json(session, inputs))))
}

/** The explanation of a query's joins. */
private[function] case object ExplanationFinding extends JsonFinding("explanation") {
  override protected def json(session: SparkSession, inputs: Seq[DataFrame]): String =
    Explainer.explain(inputs.head.queryExecution).json
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

/**
 * The skew of a key. The first row has all figures as JSON. Then there is a row for each key with
 * many rows.
 */
private[function] case class SkewFinding(
    keys: Seq[Seq[String]],
    partitions: Option[Int],
    minShare: Double,
    withBytes: Boolean)
    extends Finding {

  override def find(session: SparkSession, inputs: Seq[DataFrame]): Seq[InternalRow] = {
    val report = SkewReport.of(session, inputs, keys, partitions, minShare, withBytes)
    val hot = report.hotKeys.queryExecution
    val types = hot.analyzed.output.map(_.dataType)
    val numKeys = keys.head.size
    val all = InternalRow(null, null, null, null, UTF8String.fromString(report.figures))
    all +: hot.executedPlan.executeCollect().toSeq.map { row =>
      val key = InternalRow.fromSeq((0 until numKeys).map(j => row.get(j, types(j))))
      // The columns after the partition: for each input, a lower and an upper bound of the rows.
      def counts(first: Int): ArrayData =
        ArrayData.toArrayData(
          inputs.indices.map(i => row.getLong(numKeys + 1 + 2 * i + first)).toArray)
      InternalRow(key, row.getLong(numKeys), counts(0), counts(1), null)
    }
  }
}

private[function] object SkewFinding {

  def output(
      session: SparkSession,
      inputs: Seq[LogicalPlan],
      keys: Seq[Seq[String]]): Seq[StructField] = {
    val key: Seq[Attribute] = KeyPass.compared(session, inputs, keys)._1
    val rows = ArrayType(LongType, containsNull = false)
    Seq(
      StructField("key", StructType(key.map(a => StructField(a.name, a.dataType)))),
      StructField("partition", LongType),
      StructField("least_rows", rows),
      StructField("most_rows", rows),
      StructField("figures", StringType))
  }
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

private[function] object Finding {
  def attributes(fields: Seq[StructField]): Seq[AttributeReference] =
    fields.map(f => AttributeReference(f.name, f.dataType, f.nullable)())
}
