package org.apache.spark.sql.skewext

import java.io.InputStream

import org.apache.spark.internal.config._
import org.apache.spark.rdd.RDD
import org.apache.spark.shuffle.ShuffleReadMetricsReporter
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleReadMetricsReporter}
import org.apache.spark.storage.ShuffleBlockFetcherIterator
import org.apache.spark.{Partition, ShuffleDependency, SparkEnv, TaskContext}

/**
 * Reads the rows of a shuffle by the buffer. It can read the output of either writer, because
 * [[BulkRowSerializer]] and Spark's own write the same bytes. Tasks of a split partition read many
 * rows that they drop. Reading is the only work for such a row, and takes five or six iterators and
 * three streams in Spark. Spark fetches, checks and decompresses the blocks.
 *
 * Lives here because fetching blocks is `private[spark]`.
 *
 * @param plain the same rows as Spark reads them
 * @param specs the read of each partition
 * @param metrics the metrics of the exchange
 */
private final class BulkShuffledRowRDD(
    plain: ShuffledRowRDD,
    @transient private val specs: Seq[ShufflePartitionSpec],
    numFields: Int,
    metrics: Map[String, SQLMetric])
    extends RDD[InternalRow](plain) {

  override protected def getPartitions: Array[Partition] =
    firstParent[InternalRow].partitions.zip(specs).map { case (partition, spec) =>
      BulkShuffledRowPartition(partition.index, partition, spec)
    }

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    firstParent[InternalRow].preferredLocations(split.asInstanceOf[BulkShuffledRowPartition].plain)

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val partition = split.asInstanceOf[BulkShuffledRowPartition]
    partition.spec match {
      case CoalescedPartitionSpec(start, end, _) if end == start + 1 =>
        rows(start, 0, Int.MaxValue, context)
      case PartialReducerPartitionSpec(reducer, startMap, endMap, _) =>
        rows(reducer, startMap, endMap, context)
      // Spark can fetch several small blocks of a map task as one.
      case _ => firstParent[InternalRow].iterator(partition.plain, context)
    }
  }

  private def rows(
      reducer: Int,
      startMap: Int,
      endMap: Int,
      context: TaskContext): Iterator[InternalRow] = {
    val env = SparkEnv.get
    val conf = env.conf
    val shuffle = firstParent[InternalRow].asInstanceOf[ShuffledRowRDD].dependency
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
    new BulkShuffledRows(blocks.toCompletionIterator.map(_._2), numFields, reporter, context)
  }
}

private case class BulkShuffledRowPartition(
    index: Int,
    plain: Partition,
    spec: ShufflePartitionSpec)
    extends Partition

private final class BulkShuffledRows(
    blocks: Iterator[InputStream],
    numFields: Int,
    reporter: ShuffleReadMetricsReporter,
    context: TaskContext)
    extends Iterator[InternalRow] {

  private[this] val row = new UnsafeRow(numFields)
  private[this] var reader: BulkRowReader = _
  private[this] var numRows = 0L
  private[this] var reported = 0L

  // The last row of a block is still in use when the next block is opened.
  private[this] var buffer = BulkRowReader.newBuffer
  private[this] var otherBuffer = BulkRowReader.newBuffer

  // The consumer of the rows may stop before their end.
  context.addTaskCompletionListener[Unit](_ => report())

  override def hasNext: Boolean = (reader != null && reader.hasNext) || nextBlock()

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    reader.next()
    numRows += 1
    if ((numRows & BulkShuffledRows.CheckMask) == 0) context.killTaskIfInterrupted()
    row
  }

  private def nextBlock(): Boolean = {
    report()
    context.killTaskIfInterrupted()
    while ((reader == null || !reader.hasNext) && blocks.hasNext) {
      reader = new BulkRowReader(blocks.next(), row, buffer)
      val used = buffer
      buffer = otherBuffer
      otherBuffer = used
    }
    reader != null && reader.hasNext
  }

  private def report(): Unit = {
    reporter.incRecordsRead(numRows - reported)
    reported = numRows
    context.taskMetrics().mergeShuffleReadMetrics()
  }
}

private object BulkShuffledRows {
  private val CheckMask = (1L << 12) - 1
}

object BulkShuffledRowRDD {

  /** The rows of a plan, if it only reads a shuffle of Spark's. */
  def of(plan: SparkPlan): Option[RDD[InternalRow]] =
    plan match {
      case InputAdapter(child) => of(child)
      case read @ AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs) if isPossible =>
        read.execute() match {
          case plain: ShuffledRowRDD
              if plain.getClass == classOf[ShuffledRowRDD] && isReadable(plain.dependency) =>
            Some(new BulkShuffledRowRDD(plain, specs, plan.output.size, stage.shuffle.metrics))
          case _ => None
        }
      case _ => None
    }

  private def isPossible: Boolean = BulkShuffleExchangeExec.isPossible && canFetch

  /** False if this Spark's fetcher has other parameters than the one at compile time. */
  private lazy val canFetch = classOf[ShuffleBlockFetcherIterator].getConstructors
    .exists(_.getParameterCount == FetcherParameters)

  private val FetcherParameters = 18

  private def isReadable(dependency: ShuffleDependency[_, _, _]): Boolean = {
    val serializer = dependency.serializer
    // Merged blocks are fetched in another way.
    !dependency.shuffleMergeEnabled &&
    (serializer.isInstanceOf[UnsafeRowSerializer] || serializer.isInstanceOf[BulkRowSerializer])
  }
}
