package io.github.skewext.rules

import org.apache.spark.sql.SparkSession

/** Checks whether a session has the extension, by skewext's strategies in the session's planner. */
object LoadedExtension {

  /** The value of `spark.sql.extensions`. */
  val className = "io.github.skewext.SkewExtensions"

  /** Why a session that registered skewext later, or never, lacks a part. */
  val Missing = "the session was started without skewext"

  /** Whether the session was built with the extension. */
  def isIn(session: SparkSession): Boolean =
    session.sessionState.planner.extraPlanningStrategies.exists(_.isInstanceOf[GuardedStrategy])

  /**
   * Whether the session can plan a multi-way join: it was built with the extension, or registered
   * later.
   */
  def canPlanIn(session: SparkSession): Boolean =
    isIn(session) || session.experimental.extraStrategies.exists(_.isInstanceOf[GuardedStrategy])
}
