package org.apache.spark.sql.skewext

import scala.reflect.ClassTag

import org.apache.spark.rdd.{DeterministicLevel, RDD}
import org.apache.spark.{MapOutputTrackerMaster, Partition, SparkContext, SparkEnv, TaskContext}

/** What can happen to shuffles. */
object TestShuffles {

  /**
   * From Spark 4.1 on a query ends with an error, or is done again, where map tasks that run again have
   * written other rows. Without that, what they write must be right.
   */
  val OtherRowsAreNotSeen: (String, String) =
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch" -> "false"

  /** The class of a shuffle manager that is not Spark's. */
  val OtherManager: Class[_] = classOf[RecordShuffleManager]

  private def tracker = SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster]

  /** The shuffles that so many map tasks have written. */
  def writtenBy(maps: Int): Seq[Int] =
    tracker.shuffleStatuses.collect { case (id, s) if s.mapStatuses.length == maps => id }.toSeq

  /** As if the executors with a shuffle's files were gone: its map tasks run again when it is read. */
  def lose(shuffleId: Int): Unit = tracker.unregisterAllMapAndMergeOutput(shuffleId)

  /** As if only the executor of a shuffle's last map task were gone. */
  def loseLast(shuffleId: Int): Unit = for {
    (last, location) <- tracker.shuffleStatuses(shuffleId).withMapStatuses { all =>
      all.lastOption.filter(_ != null).map(s => (all.length - 1, s.location))
    }
  } tracker.unregisterMapOutput(shuffleId, last, location)
}

/**
 * Values that are in other partitions each time all of them are computed, and says so. Lives here
 * because levels of determinism are `private[spark]`.
 *
 * @param generation which time it is
 */
class WanderingRDD[T: ClassTag](sc: SparkContext, values: Seq[T], n: Int, generation: () => Int)
    extends RDD[T](sc, Nil) {

  private case class Part(index: Int) extends Partition

  override protected def getPartitions: Array[Partition] = Array.tabulate(n)(Part(_))

  override protected def getOutputDeterministicLevel: DeterministicLevel.Value =
    DeterministicLevel.INDETERMINATE

  override def compute(split: Partition, context: TaskContext): Iterator[T] = {
    val now = generation()
    values.iterator.zipWithIndex.collect {
      case (value, i) if (i + now) % n == split.index => value
    }
  }
}
