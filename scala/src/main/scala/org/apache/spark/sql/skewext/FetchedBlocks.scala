package org.apache.spark.sql.skewext

import java.io.InputStream

import org.apache.spark.internal.config._
import org.apache.spark.shuffle.ShuffleReadMetricsReporter
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleReadMetricsReporter}
import org.apache.spark.storage.ShuffleBlockFetcherIterator
import org.apache.spark.{ShuffleDependency, SparkEnv, TaskContext}

/**
 * Blocks of a shuffle, which Spark fetches, checks and decompresses. Lives here because Spark's
 * fetcher is `private[spark]`.
 *
 * @param streams the bytes of each block
 */
final class FetchedBlocks private (
    val streams: Iterator[InputStream],
    reporter: ShuffleReadMetricsReporter,
    context: TaskContext) {

  /** Adds to the rows that the task has read, and shows the metrics of the read so far. */
  def reportRows(more: Long): Unit = {
    reporter.incRecordsRead(more)
    context.taskMetrics().mergeShuffleReadMetrics()
  }
}

object FetchedBlocks {

  /** False if this Spark's fetcher has other parameters than the one at compile time. */
  lazy val arePossible: Boolean = classOf[ShuffleBlockFetcherIterator].getConstructors
    .exists(_.getParameterCount == FetcherParameters)

  private val FetcherParameters = 18

  /** @param metrics the metrics of the exchange */
  def of(
      shuffle: ShuffleDependency[_, _, _],
      reducer: Int,
      startMap: Int,
      endMap: Int,
      metrics: Map[String, SQLMetric],
      context: TaskContext): FetchedBlocks = {
    val env = SparkEnv.get
    val conf = env.conf
    val reporter = new SQLShuffleReadMetricsReporter(
      context.taskMetrics().createTempShuffleReadMetrics(),
      metrics)
    val blocks = new ShuffleBlockFetcherIterator(
      context,
      env.blockManager.blockStoreClient,
      env.blockManager,
      env.mapOutputTracker,
      env.mapOutputTracker
        .getMapSizesByExecutorId(shuffle.shuffleId, startMap, endMap, reducer, reducer + 1),
      env.serializerManager.wrapStream(_, _),
      maxBytesInFlight = conf.get(REDUCER_MAX_SIZE_IN_FLIGHT) << 20,
      maxReqsInFlight = conf.get(REDUCER_MAX_REQS_IN_FLIGHT),
      maxBlocksInFlightPerAddress = conf.get(REDUCER_MAX_BLOCKS_IN_FLIGHT_PER_ADDRESS),
      maxReqSizeShuffleToMem = conf.get(MAX_REMOTE_BLOCK_SIZE_FETCH_TO_MEM),
      maxAttemptsOnNettyOOM = conf.get(SHUFFLE_MAX_ATTEMPTS_ON_NETTY_OOM),
      detectCorrupt = conf.get(SHUFFLE_DETECT_CORRUPT),
      detectCorruptUseExtraMemory = conf.get(SHUFFLE_DETECT_CORRUPT_MEMORY),
      checksumEnabled = conf.get(SHUFFLE_CHECKSUM_ENABLED),
      checksumAlgorithm = conf.get(SHUFFLE_CHECKSUM_ALGORITHM),
      shuffleMetrics = reporter,
      doBatchFetch = false)
    new FetchedBlocks(blocks.toCompletionIterator.map(_._2), reporter, context)
  }
}
