package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.MergeRows
import org.apache.spark.sql.catalyst.plans.logical.MergeRows.Keep
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.execution.{LocalTableScanExec, SparkPlan}
import org.apache.spark.sql.{AnalysisException, Column, Encoders, SparkSession, SparkSessionExtensions, classic}

/** What tests write differently for each line of Spark. */
object TestShims {

  def column(e: Expression): Column = classic.ExpressionUtils.column(e)

  def errorClass(e: AnalysisException): String = e.getCondition

  def extensions(session: SparkSession): SparkSessionExtensions =
    session.asInstanceOf[classic.SparkSession].extensions

  def noRows(output: Seq[Attribute]): SparkPlan = LocalTableScanExec(output, Nil, None)

  /** A stream of what is added to it. */
  def numbers(session: SparkSession): MemoryStream[Int] =
    MemoryStream[Int](Encoders.scalaInt, session.sqlContext)

  /** Of a MERGE, that leaves a matched row as it is. */
  def keep(output: Seq[Attribute]): Keep = Keep(MergeRows.Copy, TrueLiteral, output)

  def forgetSessions(): Unit = classic.SparkSession.cleanupAnyExistingSession()

  /** For the private constructor, after the context. */
  val partsOfSession: Seq[AnyRef] = Seq(
    None,
    None,
    new SparkSessionExtensions,
    Map.empty[String, String],
    Map.empty[String, String])
}
