package io.github.skewext.shuffle

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.ShuffledRowRDD
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.ShuffleInternals
import org.apache.spark.{Partition, Partitioner, TaskContext}

/**
 * Reads the rows of a columnar shuffle. Spark reads blocks, so that each of its half a dozen nested
 * iterators makes one step for thousands of rows.
 *
 * @param blocks the blocks that [[ColumnBlockSerializer]] reads.
 * @param metrics the metrics of the exchange.
 */
private final class ColumnShuffledRDD(blocks: ShuffledRowRDD, metrics: Map[String, SQLMetric])
    extends RDD[InternalRow](blocks) {

  @transient override val partitioner: Option[Partitioner] = blocks.partitioner

  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    firstParent[InternalRow].preferredLocations(split)

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val reportRows = ShuffleInternals.countRead(context, metrics)
    // To Spark, a block is one record.
    new ShuffledColumns(
      firstParent[InternalRow].iterator(split, context),
      rows => reportRows(rows - 1L))
  }
}

/**
 * The rows of blocks. A consumer that accepts a whole block can get it before it takes the block's
 * first row.
 *
 * @param blocks each in a row of one value; a block is valid until the next one is requested.
 * @param opened called with the number of rows of each block.
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

  /**
   * The block whose first row is next; null if the next row is another row of its block. A next row
   * exists if it is not null.
   */
  def block: ColumnBlockRows = if (hasNext && current.taken == 0) current else null

  private def nextBlock(): Boolean = {
    // A block has at least one row.
    val is = blocks.hasNext
    if (is) {
      val block = blocks.next().asInstanceOf[GenericInternalRow].values(0)
      current = block.asInstanceOf[ColumnBlockRows]
      opened(current.numRows)
    }
    is
  }
}
