package io.github.skewext.platform

import java.util.concurrent.atomic.AtomicBoolean

import io.github.skewext.internal.BuildInfo
import org.slf4j.LoggerFactory

import org.apache.spark.SPARK_VERSION

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
