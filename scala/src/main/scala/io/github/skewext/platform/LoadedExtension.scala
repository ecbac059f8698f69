package io.github.skewext.platform

import java.util.Locale

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.StaticSQLConf.SPARK_SESSION_EXTENSIONS

/** Checks whether a session has the extension, by skewext's strategies in the session's planner. */
object LoadedExtension {

  /** The value of `spark.sql.extensions`. */
  val className = "io.github.skewext.SkewExtensions"

  /** Why a session that registered skewext later, or never, lacks a part. */
  val Missing = "the session was started without skewext"

  /**
   * Why a session that has our jar was built without the extension: it is not named, or its name is
   * wrong, or there was no jar when the session started.
   */
  def whyMissing(session: SparkSession): String = {
    val key = SPARK_SESSION_EXTENSIONS.key
    val value = session.sessionState.conf.getConfString(key, "")
    val names = value.split(",").map(_.trim).filter(_.nonEmpty)
    names.find(_.toLowerCase(Locale.ROOT).contains("skewext")) match {
      case Some(`className`) => s"$key names the class, but the session started without the jar"
      case Some(other) => s"$key names $other, and the class is $className"
      case None if names.isEmpty => s"$key is not set"
      case None => s"$key is $value, without $className"
    }
  }

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
