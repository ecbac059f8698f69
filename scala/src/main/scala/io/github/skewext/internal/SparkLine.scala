package io.github.skewext.internal

import java.util.concurrent.atomic.AtomicBoolean

import org.slf4j.LoggerFactory

import org.apache.spark.SPARK_VERSION

/**
 * Whether the jar is in a Spark of its own line. In another one Scala may be another as well, which links
 * hardly anything of ours: so there are only Java's classes here, no function, and no interpolated text.
 */
object SparkLine {

  private val told = new AtomicBoolean

  def isOurs: Boolean = SPARK_VERSION.startsWith(BuildInfo.sparkLine + ".")

  /** Why nothing of ours can run. */
  def unsupported: String = {
    val use = if (isOurs) "a newer release" else "the jar"
    "skewext " + BuildInfo.version + " is built for Spark " + BuildInfo.sparkLine + " and this is Spark " +
      SPARK_VERSION + "; use " + use + " of this Spark's line."
  }

  def warnOnce(): Unit =
    if (told.compareAndSet(false, true)) {
      LoggerFactory.getLogger("io.github.skewext.SkewExtensions").warn(unsupported)
    }
}
