package org.apache.spark.sql.skewext

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config.PLUGINS
import org.apache.spark.shuffle.sort.SortShuffleManager

/** Spark's own shuffle. Lives here because its manager is `private[spark]`. */
object BuiltinShuffle {

  /**
   * Whether Spark itself runs the shuffles of this application. Another shuffle manager, or a
   * plugin that executes plans in its own way, replaces exchanges and recognizes Spark's exchange
   * by its class.
   */
  def isUsed: Boolean = {
    val env = SparkEnv.get
    env != null && SparkShims.shuffleManager(env).getClass == classOf[SortShuffleManager] &&
    env.conf.get(PLUGINS).isEmpty
  }
}
