package io.github.skewext.shuffle

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Converts a map task's batches to blocks, each with its partition. It returns blocks whenever
 * memory is used up: that of Spark, or skewext's own limit.
 *
 * @param reportRows gets the number of rows in addition to the blocks, which Spark counts as records
 * @param dataSize the bytes of the rows if they were written as rows
 * @param copies whether each block is an object of its own. All share one otherwise, which is valid
 *               until the next is requested.
 */
private final class ColumnBlocks(
    batches: Iterator[ColumnarBatch],
    runs: PartitionedColumnBuffer,
    reportRows: Long => Unit,
    dataSize: SQLMetric,
    copies: Boolean,
    context: TaskContext)
    extends Iterator[Product2[Int, ByteBuilder]] {

  private[this] val memory = new TaskInternals.HeapMemory(context)
  private[this] val pageSize = TaskInternals.memory(context).pageSizeBytes
  context.addTaskCompletionListener[Unit](_ => memory.release())

  private[this] var batch: ColumnarBatch = _
  private[this] var batchRow = 0
  private[this] var blocks: Iterator[(Int, Int, ByteBuilder)] = Iterator.empty

  override def hasNext: Boolean = {
    while (!blocks.hasNext && hasBatch) fill()
    blocks.hasNext
  }

  override def next(): Product2[Int, ByteBuilder] = {
    if (!hasNext) throw new NoSuchElementException
    val (partition, rows, block) = blocks.next()
    reportRows(rows - 1L)
    (partition, if (copies) block.copy() else block)
  }

  private def fill(): Unit = {
    var isFull = false
    while (!isFull && hasBatch) {
      val until = math.min(batch.numRows, batchRow + ColumnBlocks.ManyRows)
      // A batch may have any size, and needs more bytes here: it stores the strings of a
      // dictionary, or a constant, once.
      batchRow += runs.add(batch, batchRow, until, ColumnBlocks.AtOnce)
      // The rows just added are in memory in any case. The factor is 2 because arrays grow in
      // advance, and blocks are a copy. A request takes the lock of all tasks, so there are few.
      val wanted = (2 * runs.size + forWriter) / ColumnBlocks.Reserved + 1
      isFull = isEnough(runs.size) || !memory.reserve(wanted * ColumnBlocks.Reserved)
    }
    memory.release(forWriter)
    dataSize.add(runs.rowBytes)
    runs.rowBytes = 0
    blocks = runs.drain()
  }

  private def isEnough(size: Long): Boolean =
    size >= ColumnBlocks.Most || (size >= ColumnBlocks.Few && (runs.fillsBlocks || runs.hasLongRows))

  /** What Spark's writer needs for the blocks. It fails if it does not get its first page. */
  private def forWriter: Long = runs.size + pageSize

  private def hasBatch: Boolean = {
    while ((batch == null || batchRow == batch.numRows) && batches.hasNext) {
      TaskInternals.endIfKilled(context)
      batch = batches.next()
      batchRow = 0
    }
    batch != null && batchRow < batch.numRows
  }
}

private object ColumnBlocks {

  /** With more bytes, the arrays of all tasks of an executor are in no cache. */
  private val Most = 32L << 20

  /** With fewer bytes, Spark's writer handles many small blocks, unless each row is large. */
  private val Few = 4L << 20

  /** Memory is reserved in steps of so many bytes. */
  private val Reserved = 256L << 10

  // Rows of a batch, and bytes of one column of them, that are added before the next check of the
  // memory. A single row may have more bytes.
  private val ManyRows = 128
  private val AtOnce = 1 << 20
}
