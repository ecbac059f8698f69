package org.apache.spark.sql.skewext

import scala.reflect.ClassTag

import org.apache.spark.rdd.RDD
import org.apache.spark.serializer.Serializer
import org.apache.spark.shuffle.ShuffleHandle
import org.apache.spark.shuffle.sort.SerializedShuffleHandle
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.{PartitionIdPassthrough, ShuffleDependency}

/**
 * The dependency on a shuffle of blocks, each with its partition. A block is a record, which any
 * shuffle manager writes and reads by the serializer. Lives here because handles are
 * `private[spark]`.
 *
 * @param metrics the metrics of the exchange
 */
sealed class BlockShuffleDependency[B: ClassTag] private[skewext] (
    blocks: RDD[Product2[Int, B]],
    numPartitions: Int,
    serializer: Serializer,
    metrics: Map[String, SQLMetric])
    extends ShuffleDependency[Int, B, B](
      blocks,
      new PartitionIdPassthrough(numPartitions),
      serializer,
      shuffleWriterProcessor = ShuffleExchangeExec.createShuffleWriteProcessor(metrics))

/**
 * One of Spark's own shuffle manager. It uses the handle for many partitions. With few partitions,
 * Spark would write each to a file of its own, which is useless for blocks that arrive in the order
 * of partitions.
 */
private final class SortedBlocksDependency[B: ClassTag](
    blocks: RDD[Product2[Int, B]],
    numPartitions: Int,
    serializer: Serializer,
    metrics: Map[String, SQLMetric])
    extends BlockShuffleDependency[B](blocks, numPartitions, serializer, metrics) {

  override val shuffleHandle: ShuffleHandle = new SerializedShuffleHandle(shuffleId, this)
}

object BlockShuffleDependency {

  /**
   * @param keepsMemory whether the writer may keep memory while the task computes further blocks. It
   *                    gives none back to operators below.
   */
  def apply[B: ClassTag](
      blocks: RDD[Product2[Int, B]],
      numPartitions: Int,
      serializer: Serializer,
      metrics: Map[String, SQLMetric],
      keepsMemory: Boolean = true): BlockShuffleDependency[B] =
    if (ShuffleService.isBuiltin && keepsMemory) {
      new SortedBlocksDependency(blocks, numPartitions, serializer, metrics)
    } else {
      new BlockShuffleDependency(blocks, numPartitions, serializer, metrics)
    }
}
