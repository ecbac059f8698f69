package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.{classic, AnalysisException, Column, SparkSessionExtensions}

/** What tests write differently for each line of Spark. */
object TestShims {

  def column(e: Expression): Column = classic.ExpressionUtils.column(e)

  def errorClass(e: AnalysisException): String = e.getCondition

  def forgetSessions(): Unit = classic.SparkSession.cleanupAnyExistingSession()

  /** For the private constructor, after the context. */
  val partsOfSession: Seq[AnyRef] = Seq(
    None,
    None,
    new SparkSessionExtensions,
    Map.empty[String, String],
    Map.empty[String, String])
}
