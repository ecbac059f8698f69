package org.apache.spark.sql.skewext

import org.apache.spark.SparkConf
import org.apache.spark.internal.config.PLUGINS

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
