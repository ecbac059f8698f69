package org.apache.spark.sql.skewext

import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}

/** Sizes of map outputs. Lives here because the driver's map output tracker is `private[spark]`. */
object ShuffleBlocks {

  /** The bytes that each map task wrote for a partition; -1 if its output is lost. */
  def sizes(shuffleId: Int, partition: Int): Seq[Long] =
    SparkEnv.get.mapOutputTracker match {
      case tracker: MapOutputTrackerMaster =>
        tracker.shuffleStatuses
          .get(shuffleId)
          .map(_.withMapStatuses { statuses =>
            statuses.map(s => if (s == null) -1L else s.getSizeForBlock(partition)).toSeq
          })
          .getOrElse(Nil)
      case _ => Nil
    }
}
