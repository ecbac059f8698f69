package io.github.skewext.function

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.unsafe.types.UTF8String

/**
 * The result of a table function, computed when its rows are read.
 *
 * @param description the text in plans and in Spark's UI, without options, which may be secrets.
 */
private[function] class Finding(description: String, val schema: StructType)(
    val rows: (SparkSession, Seq[DataFrame]) => Seq[InternalRow]) {
  override def toString: String = description
}

private[function] object Finding {

  /** A result that is one text of JSON. */
  def json(description: String, column: String)(
      text: (SparkSession, Seq[DataFrame]) => String): Finding =
    new Finding(description, new StructType().add(column, StringType, nullable = false))(
      (session, inputs) => Seq(InternalRow(UTF8String.fromString(text(session, inputs)))))
}
