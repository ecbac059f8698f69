package org.apache.spark.sql.skewext

import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}

/** What can happen to shuffles. */
object TestShuffles {

  /** As if the executors with a shuffle's files were gone: its map tasks run again when it is read. */
  def lose(shuffleId: Int): Unit = SparkEnv.get.mapOutputTracker
    .asInstanceOf[MapOutputTrackerMaster]
    .unregisterAllMapAndMergeOutput(shuffleId)
}
