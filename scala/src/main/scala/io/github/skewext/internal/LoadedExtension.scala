package io.github.skewext.internal

import org.apache.spark.sql.SparkSession

/** Whether a session has the extension: told by our strategies, which Spark shows. */
object LoadedExtension {

  /** What `spark.sql.extensions` is set to. */
  val className = "io.github.skewext.SkewExtensions"

  /** Whether the session was built with it. */
  def isIn(session: SparkSession): Boolean =
    session.sessionState.planner.extraPlanningStrategies.exists(_.isInstanceOf[GuardedStrategy])

  /** Whether the session can plan our operator: it was built with the extension, or registered it later. */
  def canPlanIn(session: SparkSession): Boolean =
    isIn(session) || session.experimental.extraStrategies.exists(_.isInstanceOf[GuardedStrategy])
}
