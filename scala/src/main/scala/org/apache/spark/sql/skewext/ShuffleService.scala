package org.apache.spark.sql.skewext

import org.apache.spark.SparkEnv
import org.apache.spark.shuffle.sort.SortShuffleManager

/** Who runs the shuffles of this application. Lives here because it is `private[spark]`. */
object ShuffleService {

  /** Whether it is Spark's own shuffle manager, whose files skewext reads by itself. */
  def isBuiltin: Boolean = hasSparksExchanges &&
    SparkShims.shuffleManager(SparkEnv.get).getClass == classOf[SortShuffleManager]

  /** Whether exchanges run as planned. */
  def hasSparksExchanges: Boolean = whyNoExchanges.isEmpty

  /** Why a part that needs Spark's own exchanges is off, as every report says it. */
  def exchangesMissing: Option[String] =
    whyNoExchanges.map(why => s"it needs Spark's own exchanges, and $why")

  /** The reason why they may not, see [[Accelerators]]. */
  def whyNoExchanges: Option[String] =
    if (SparkEnv.get == null) Some("no application is running")
    else Accelerators.whyNoExchanges(SparkEnv.get.conf)
}
