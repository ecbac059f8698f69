package io.github.skewext.shuffle

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.{FetchedBlocks, ShuffleService, TaskInternals}
import org.apache.spark.{Partition, ShuffleDependency, TaskContext}

/**
 * Reads the rows of Spark's own exchange by the buffer. Tasks of a split partition read many rows
 * that they drop. Reading is the only work for such a row, and takes five or six iterators and
 * three streams in Spark. Spark fetches, checks and decompresses the blocks.
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
    val shuffle = firstParent[InternalRow].asInstanceOf[ShuffledRowRDD].dependency
    val blocks = FetchedBlocks.of(shuffle, reducer, startMap, endMap, metrics, context)
    new BulkShuffledRows(blocks, numFields, context)
  }
}

private case class BulkShuffledRowPartition(
    index: Int,
    plain: Partition,
    spec: ShufflePartitionSpec)
    extends Partition

private[skewext] final class BulkShuffledRows(
    blocks: FetchedBlocks,
    numFields: Int,
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
  private[this] val end = TaskInternals.atEnd(context)(report())

  override def hasNext: Boolean = (reader != null && reader.hasNext) || nextBlock()

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    reader.next()
    numRows += 1
    if ((numRows & BulkShuffledRows.CheckMask) == 0) TaskInternals.endIfKilled(context)
    row
  }

  private def nextBlock(): Boolean = {
    report()
    TaskInternals.endIfKilled(context)
    while ((reader == null || !reader.hasNext) && blocks.streams.hasNext) {
      reader = new BulkRowReader(blocks.streams.next(), row, buffer)
      val used = buffer
      buffer = otherBuffer
      otherBuffer = used
    }
    val isMore = reader != null && reader.hasNext
    if (!isMore) end.run()
    isMore
  }

  private def report(): Unit = {
    blocks.reportRows(numRows - reported)
    reported = numRows
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

  private def isPossible: Boolean = ShuffleService.isBuiltin && FetchedBlocks.arePossible

  /** Merged blocks are fetched in another way. */
  private def isReadable(dependency: ShuffleDependency[_, _, _]): Boolean =
    !dependency.shuffleMergeEnabled && dependency.serializer.isInstanceOf[UnsafeRowSerializer]
}
