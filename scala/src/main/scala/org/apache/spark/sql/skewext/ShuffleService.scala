package org.apache.spark.sql.skewext

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config.PLUGINS
import org.apache.spark.shuffle.sort.SortShuffleManager

/** Who runs the shuffles of this application. Lives here because it is `private[spark]`. */
object ShuffleService {

  /** Whether it is Spark's own shuffle manager, whose files skewext reads by itself. */
  def isBuiltin: Boolean = hasSparksExchanges &&
    SparkShims.shuffleManager(SparkEnv.get).getClass == classOf[SortShuffleManager]

  /**
   * Whether exchanges run as planned. A plugin that executes plans in its own way replaces
   * exchanges, and recognizes Spark's exchange by its class.
   */
  def hasSparksExchanges: Boolean = whyNoExchanges.isEmpty

  /** The reason why they may not. */
  def whyNoExchanges: Option[String] =
    if (SparkEnv.get == null) Some("no application is running")
    else {
      // Spark's own plugin only starts the server of Spark Connect.
      val others = SparkEnv.get.conf.get(PLUGINS).filterNot(_ == ConnectServer)
      others.headOption.map(plugin => s"${PLUGINS.key} names $plugin")
    }

  private val ConnectServer = "org.apache.spark.sql.connect.SparkConnectPlugin"
}
