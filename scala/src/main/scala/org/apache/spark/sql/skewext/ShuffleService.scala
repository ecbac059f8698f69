package org.apache.spark.sql.skewext

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config.PLUGINS
import org.apache.spark.shuffle.sort.SortShuffleManager

/** Who runs the shuffles of this application. Lives here because it is `private[spark]`. */
object ShuffleService {

  /** Whether it is Spark's own shuffle manager, whose files skewext reads by itself. */
  def isBuiltin: Boolean =
    hasSparksExchanges && manager.getClass == classOf[SortShuffleManager]

  /** The class of the shuffle manager, for reasons that `explain` shows. */
  def managerName: String = manager.getClass.getSimpleName

  private def manager = SparkShims.shuffleManager(SparkEnv.get)

  /**
   * Whether exchanges run as planned. A plugin that executes plans in its own way replaces
   * exchanges, and recognizes Spark's exchange by its class.
   */
  def hasSparksExchanges: Boolean =
    SparkEnv.get != null && SparkEnv.get.conf.get(PLUGINS).isEmpty
}
