package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.{AnalysisException, Column, SparkSession, SparkSessionExtensions}

/** What tests write differently for each line of Spark. */
object TestShims {

  def column(e: Expression): Column = new Column(e)

  def errorClass(e: AnalysisException): String = e.getErrorClass

  def forgetSessions(): Unit = SparkSession.cleanupAnyExistingSession()

  /** For the private constructor, after the context. */
  val partsOfSession: Seq[AnyRef] =
    Seq(None, None, new SparkSessionExtensions, Map.empty[String, String])
}
