package org.apache.spark.sql.skewext

import io.github.skewext.internal.ColumnBlockRows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.ShuffledRowRDD
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleReadMetricsReporter}
import org.apache.spark.{Partition, Partitioner, TaskContext}

/**
 * The rows of a shuffle that was written by column. What Spark reads are blocks, so that of its iterators,
 * of which there are half a dozen above each other, each has one step for thousands of rows.
 *
 * Lives here because Spark's reporter of metrics is `private[spark]`.
 *
 * @param blocks as [[ColumnBlockSerializer]] gives them
 * @param metrics of the exchange
 */
private final class ColumnShuffledRDD(blocks: ShuffledRowRDD, metrics: Map[String, SQLMetric])
    extends RDD[InternalRow](blocks) {

  @transient override val partitioner: Option[Partitioner] = blocks.partitioner

  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    firstParent[InternalRow].preferredLocations(split)

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val reporter = new SQLShuffleReadMetricsReporter(
      context.taskMetrics().createTempShuffleReadMetrics(),
      metrics)
    // To Spark, a block is one record.
    new ShuffledColumns(
      firstParent[InternalRow].iterator(split, context),
      rows => reporter.incRecordsRead(rows - 1L))
  }
}

/**
 * Rows for whoever wants rows. Who can take a block as a whole asks for it when no row of it was taken yet.
 *
 * @param blocks each in a row of one value; a block is valid until the next one is asked for
 * @param opened is told how many rows each block has
 */
final class ShuffledColumns(blocks: Iterator[InternalRow], opened: Int => Unit)
    extends Iterator[InternalRow] {

  private[this] var current: ColumnBlockRows = _

  override def hasNext: Boolean = (current != null && current.hasNext) || nextBlock()

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    current.next()
    current.row
  }

  /** The block of the row that comes next, if that is its first one; else null. There is a next one. */
  def block: ColumnBlockRows = if (hasNext && current.taken == 0) current else null

  private def nextBlock(): Boolean = {
    // A block has a row at least.
    val is = blocks.hasNext
    if (is) {
      val block = blocks.next().asInstanceOf[GenericInternalRow].values(0)
      current = block.asInstanceOf[ColumnBlockRows]
      opened(current.numRows)
    }
    is
  }
}
