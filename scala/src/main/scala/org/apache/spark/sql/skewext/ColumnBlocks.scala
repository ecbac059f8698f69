package org.apache.spark.sql.skewext

import io.github.skewext.internal.{ByteBuilder, ColumnRuns}

import org.apache.spark.TaskContext
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * A map task's batches as blocks, each with the partition that it goes to. Blocks come whenever memory
 * is used up, Spark's or our own bound for it.
 *
 * @param reporter knows each block as a record, and is to know rows
 * @param dataSize bytes of the rows, had they been written as such
 */
private final class ColumnBlocks(
    batches: Iterator[ColumnarBatch],
    runs: ColumnRuns,
    reporter: ShuffleWriteMetricsReporter,
    dataSize: SQLMetric,
    context: TaskContext)
    extends Iterator[Product2[Int, ByteBuilder]] {

  private[this] val memory = new TaskInternals.HeapMemory(context)
  context.addTaskCompletionListener[Unit](_ => memory.release())

  private[this] var batch: ColumnarBatch = _
  private[this] var batchRow = 0
  private[this] var rowsAtOnce = ColumnBlocks.FewRows
  private[this] var blocks: Iterator[(Int, Int, ByteBuilder)] = Iterator.empty

  override def hasNext: Boolean = {
    while (!blocks.hasNext && hasBatch) fill()
    blocks.hasNext
  }

  override def next(): Product2[Int, ByteBuilder] = {
    if (!hasNext) throw new NoSuchElementException
    val (partition, rows, block) = blocks.next()
    reporter.incRecordsWritten(rows - 1L)
    (partition, block)
  }

  private def fill(): Unit = {
    var isFull = false
    while (!isFull && hasBatch) {
      val until = math.min(batch.numRows, batchRow + rowsAtOnce)
      val before = runs.size
      runs.add(batch, batchRow, until)
      batchRow = until
      // A batch may be of any size, and larger here than it is there: of a dictionary's strings, or a
      // constant one, it has one copy.
      rowsAtOnce =
        if (runs.size - before > ColumnBlocks.AtOnce) math.max(1, rowsAtOnce / 2)
        else math.min(ColumnBlocks.ManyRows, 2 * rowsAtOnce)
      // What was just added is there in any case. Twice, as arrays grow ahead, and blocks are a copy.
      isFull = runs.size >= ColumnBlocks.Most || !memory.reserve(2 * runs.size)
    }
    dataSize.add(runs.rowBytes)
    runs.rowBytes = 0
    blocks = runs.drain()
  }

  private def hasBatch: Boolean = {
    while ((batch == null || batchRow == batch.numRows) && batches.hasNext) {
      context.killTaskIfInterrupted()
      batch = batches.next()
      batchRow = 0
    }
    batch != null && batchRow < batch.numRows
  }
}

private object ColumnBlocks {

  /** Blocks of fewer bytes save little; with more, what is read next is in no cache any more. */
  private val Most = 32L << 20

  // Of a batch, before it is looked at whether memory is used up.
  private val FewRows = 16
  private val ManyRows = 1024
  private val AtOnce = 1L << 20
}
