package org.apache.spark.sql.skewext

import org.apache.spark.internal.config.PLUGINS
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.{SparkConf, SparkEnv}

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

/**
 * The plugins of Spark that execute plans by engines of their own. They recognize Spark's exchange by
 * its class and replace it. Other plugins, such as those that monitor, replace nothing. Lives here
 * because the setting is `private[spark]`.
 */
private[skewext] object Accelerators {

  /** What the names of their classes begin with. */
  private val Names = Seq(
    "org.apache.spark.CometPlugin",
    "org.apache.comet.",
    "com.nvidia.spark.", // RAPIDS
    "org.apache.gluten.",
    "io.glutenproject.", // Gluten before it came to Apache
    "com.intel.oap." // Gazelle
  )

  /** The reason why an application with this configuration may have other exchanges than Spark's. */
  def whyNoExchanges(conf: SparkConf): Option[String] =
    conf.get(PLUGINS).find(plugin => Names.exists(plugin.startsWith)).map { plugin =>
      s"${PLUGINS.key} names $plugin"
    }
}
