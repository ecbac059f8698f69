package org.apache.spark.sql.skewext

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config.{PLUGINS, SHUFFLE_MANAGER}
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

  /**
   * Whether exchanges run as planned. A plugin that executes plans in its own way replaces
   * exchanges, and recognizes Spark's exchange by its class.
   */
  def hasSparksExchanges: Boolean = whyNoExchanges.isEmpty

  /** Why a part that needs Spark's own exchanges is off, as every report says it. */
  def exchangesMissing: Option[String] =
    whyNoExchanges.map(why => s"it needs Spark's own exchanges, and $why")

  /** The reason why they may not. */
  private def whyNoExchanges: Option[String] =
    if (SparkEnv.get == null) Some("no application is running")
    else {
      // Spark's own plugin only starts the server of Spark Connect.
      val others = SparkEnv.get.conf.get(PLUGINS).filterNot(_ == ConnectServer)
      others.headOption.map(plugin => s"${PLUGINS.key} names $plugin")
    }

  private val ConnectServer = "org.apache.spark.sql.connect.SparkConnectPlugin"
}
