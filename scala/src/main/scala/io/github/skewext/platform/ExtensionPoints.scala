package io.github.skewext.platform

import org.apache.spark.SPARK_VERSION
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSessionExtensions

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
