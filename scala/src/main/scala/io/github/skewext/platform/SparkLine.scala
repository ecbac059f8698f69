package io.github.skewext.platform

import java.util.concurrent.atomic.AtomicBoolean

import io.github.skewext.internal.BuildInfo
import org.slf4j.LoggerFactory

import org.apache.spark.SPARK_VERSION
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSessionExtensions

/**
 * Checks whether this Spark is of the line for which the jar was built. Another line may have
 * another Scala version, with which hardly any class of skewext links. So this object uses only
 * Java classes, no function, and no interpolated string.
 */
object SparkLine {

  private val told = new AtomicBoolean

  def isOurs: Boolean = SPARK_VERSION.startsWith(BuildInfo.sparkLine + ".")

  /** The reason why skewext cannot run in this Spark. */
  def unsupported: String =
    "skewext " + BuildInfo.version + " is built for Spark " + BuildInfo.sparkLine + " and this is Spark " +
      SPARK_VERSION + "; use the jar of this Spark's line."

  def warnOnce(): Unit =
    if (told.compareAndSet(false, true)) {
      LoggerFactory.getLogger("io.github.skewext.SkewExtensions").warn(unsupported)
    }
}

/** The extension points of the running Spark, as far as releases of a line differ in them. */
object ExtensionPoints extends Logging {

  /**
   * Whether rules can read a plan before exchanges are planned. Spark 3.5.0 lacks this. A vendor's
   * Spark may have it under that version number, so this checks the method.
   */
  lazy val hasRulesBeforeExchanges: Boolean = classOf[SparkSessionExtensions].getMethods
    .exists(_.getName == "injectQueryPostPlannerStrategyRule")

  /** The extension point that is missing. */
  def missing: Option[String] =
    if (hasRulesBeforeExchanges) None
    else {
      Some(
        s"Spark $SPARK_VERSION has no extension point before exchanges are planned; 3.5.1 has one")
    }

  /** What skewext cannot do in this Spark. */
  def limits: Option[String] =
    missing.map(_ + ". So skewext splits no partition, and does not spread rows with a null key.")

  private lazy val warned: Unit = limits.foreach(logWarning(_))

  def warnOnce(): Unit = warned
}
