package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

/** What tests reach only from inside Spark. */
object TestSessions {

  /**
   * A session of the same context that knows no extension. Only the primary constructor, which is
   * private, leaves the context's own extensions out.
   */
  def withoutExtensions(session: SparkSession): SparkSession = {
    // A test's session is of a class below the one that a session is of.
    val constructor =
      session.getClass.getSuperclass.getDeclaredConstructors.maxBy(_.getParameterCount)
    constructor.setAccessible(true)
    constructor
      .newInstance(session.sparkContext +: TestShims.partsOfSession: _*)
      .asInstanceOf[SparkSession]
  }

  def optimizerRules(
      extensions: SparkSessionExtensions,
      session: SparkSession): Seq[Rule[LogicalPlan]] = extensions.buildOptimizerRules(session)
}
