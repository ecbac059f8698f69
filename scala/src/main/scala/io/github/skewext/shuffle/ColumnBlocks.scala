package io.github.skewext.shuffle

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpillWriter

/**
 * Converts a map task's batches to blocks, each with its partition. It returns blocks whenever
 * memory is used up: that of Spark, or skewext's own limit.
 *
 * An operator below in the same task may need memory for its next batch, or may have so much that
 * Spark's writer would get no page. Then the blocks go to a file until there is memory, or until the
 * batches end.
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

  private[this] val memory = new TaskInternals.HeapMemory(context, () => giveUp())
  private[this] val pageSize = TaskInternals.memory(context).pageSizeBytes
  private[this] val files = mutable.ArrayBuffer.empty[UnsafeSorterSpillWriter]
  private[this] var numRead = 0
  context.addTaskCompletionListener[Unit] { _ =>
    memory.release()
    files.foreach(_.getFile.delete())
  }

  // The thread that waits for the next batch, or that writes blocks. Others ask for memory while this
  // one uses the rows.
  private[this] var waiting: Thread = _
  private[this] var writing: Thread = _

  private[this] var batch: ColumnarBatch = _
  private[this] var batchRow = 0
  private[this] var blocks: Iterator[(Int, Int, ByteBuilder)] = Iterator.empty

  override def hasNext: Boolean = {
    while (!blocks.hasNext && (hasBatch || numRead < files.size)) fill()
    blocks.hasNext
  }

  override def next(): Product2[Int, ByteBuilder] = {
    if (!hasNext) throw new NoSuchElementException
    val (partition, rows, block) = blocks.next()
    reportRows(rows - 1L)
    (partition, if (copies) block.copy() else block)
  }

  private def fill(): Unit = {
    writing = null
    var isFull = false
    while (!isFull && hasBatch) {
      val until = math.min(batch.numRows, batchRow + ColumnBlocks.ManyRows)
      // A batch may have any size, and needs more bytes here: it stores the strings of a
      // dictionary, or a constant, once.
      batchRow += runs.add(batch, batchRow, until, ColumnBlocks.AtOnce)
      // The rows just added are in memory in any case. The factor is 2 because arrays grow in
      // advance, and blocks are a copy. A request takes the lock of all tasks, so there are few.
      val wanted = (2 * runs.size + forWriter) / ColumnBlocks.Reserved + 1
      val fits = memory.reserve(wanted * ColumnBlocks.Reserved)
      if (isEnough(runs.size) || (!fits && runs.size >= ColumnBlocks.Least)) {
        isFull = fits || leavesForWriter
        if (!isFull) spill()
      }
    }
    memory.release(forWriter)
    val unread = files.drop(numRead).toList
    numRead = files.size
    blocks = unread.iterator.flatMap(blocksIn) ++ drained()
    writing = Thread.currentThread
  }

  private def leavesForWriter: Boolean = {
    memory.release()
    memory.reserve(forWriter)
  }

  private def giveUp(): Unit = {
    val thread = Thread.currentThread
    if (waiting eq thread) spill()
    // Blocks need less than the rows did, and each is written soon.
    else if (writing eq thread) memory.release()
  }

  private def drained(): Iterator[(Int, Int, ByteBuilder)] = {
    dataSize.add(runs.rowBytes)
    runs.rowBytes = 0
    if (runs.isEmpty) Iterator.empty else runs.drain()
  }

  /** Writes blocks of the rows so far to a file. */
  private def spill(): Unit = if (!runs.isEmpty) {
    val size = runs.size
    val blocks = drained()
    val file = TaskInternals.spillWriter(runs.numBlocks)
    files += file
    for ((partition, rows, block) <- blocks) {
      val prefix = partition.toLong << 32 | rows
      file.write(block.array, Platform.BYTE_ARRAY_OFFSET.toLong, block.size, prefix)
    }
    file.close()
    TaskInternals.reportSpill(context, math.max(size, memory.getUsed), file.getFile.length)
    memory.release()
  }

  private def blocksIn(file: UnsafeSorterSpillWriter): Iterator[(Int, Int, ByteBuilder)] = {
    val records = TaskInternals.spillReader(file)
    val block = new ByteBuilder(0)
    new Iterator[(Int, Int, ByteBuilder)] {
      override def hasNext: Boolean = {
        val is = records.hasNext
        if (!is) file.getFile.delete()
        is
      }

      override def next(): (Int, Int, ByteBuilder) = {
        records.loadNext()
        block.clear()
        block.put(
          records.getBaseObject.asInstanceOf[Array[Byte]],
          records.getBaseOffset,
          records.getRecordLength)
        ((records.getKeyPrefix >> 32).toInt, records.getKeyPrefix.toInt, block)
      }
    }
  }

  private def isEnough(size: Long): Boolean =
    size >= ColumnBlocks.Most || (size >= ColumnBlocks.Few && (runs.fillsBlocks || runs.hasLongRows))

  /** What Spark's writer needs for the blocks. It fails if it does not get its first page. */
  private def forWriter: Long = runs.size + pageSize

  private def hasBatch: Boolean = {
    waiting = Thread.currentThread
    while ((batch == null || batchRow == batch.numRows) && batches.hasNext) {
      TaskInternals.endIfKilled(context)
      batch = batches.next()
      batchRow = 0
    }
    waiting = null
    batch != null && batchRow < batch.numRows
  }
}

private object ColumnBlocks {

  /** With more bytes, the arrays of all tasks of an executor are in no cache. */
  private val Most = 32L << 20

  /** With fewer bytes, Spark's writer handles many small blocks, unless each row is large. */
  private val Few = 4L << 20

  /** With fewer bytes, there would be too many files. They need no reserved memory. */
  private val Least = 1L << 20

  /** Memory is reserved in steps of so many bytes. */
  private val Reserved = 256L << 10

  // Rows of a batch, and bytes of one column of them, that are added before the next check of the
  // memory. A single row may have more bytes.
  private val ManyRows = 128
  private val AtOnce = 1 << 20
}
