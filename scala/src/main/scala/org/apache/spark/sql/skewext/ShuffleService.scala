package org.apache.spark.sql.skewext

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config.SHUFFLE_MANAGER
import org.apache.spark.shuffle.sort.SortShuffleManager

/** Who runs the shuffles of this application. Lives here because it is `private[spark]`. */
object ShuffleService {

  /** Whether it is Spark's own shuffle manager, whose files skewext reads by itself. */
  def isBuiltin: Boolean = whyNotBuiltin.isEmpty

  /** The reason why it is not. */
  def whyNotBuiltin: Option[String] = whyNoExchanges.orElse(
    if (manager.getClass == classOf[SortShuffleManager]) None
    else Some(s"${SHUFFLE_MANAGER.key} is another one than Spark's own"))

  /** The class of the shuffle manager, for reasons that `explain` shows. */
  def managerName: String = manager.getClass.getSimpleName

  private def manager = SparkShims.shuffleManager(SparkEnv.get)

  /** Whether exchanges run as planned. */
  def hasSparksExchanges: Boolean = whyNoExchanges.isEmpty

  /** The reason why they may not, see [[Accelerators]]. */
  def whyNoExchanges: Option[String] =
    if (SparkEnv.get == null) Some("no application is running")
    else Accelerators.whyNoExchanges(SparkEnv.get.conf)
}
