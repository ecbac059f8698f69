package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.{AnalysisException, DataFrame, Dataset, SparkSession}

/** The few calls into `private[sql]` members that need no class of their own. */
object SqlInternals {

  /** A DataFrame of a logical plan: analyzes it. */
  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)

  /** Runs `body` with the session, and so with its settings, as the active one. */
  def withActive[T](session: SparkSession)(body: => T): T = session.withActive(body)

  /** As Spark's joins compare floating-point values: -0.0 = 0.0 and all NaNs are one. */
  def normalizeFloats(expr: Expression): Expression = NormalizeFloatingNumbers.normalize(expr)

  /** The error that users know for a query that cannot be analyzed, without an error class. */
  def analysisError(message: String, cause: Option[Throwable] = None): AnalysisException =
    new AnalysisException(message, cause = cause)
}
