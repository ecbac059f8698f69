package io.github.skewext.shuffle

import java.io.{Closeable, File, IOException}

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform

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

  // Files of blocks, in their order, and how many of them have been opened.
  private[this] val files = mutable.ArrayBuffer.empty[File]
  private[this] var numOpened = 0
  private[this] var unread = 0L
  private[this] var opened: Closeable = _
  private[this] var failure: IOException = _
  context.addTaskCompletionListener[Unit] { _ =>
    memory.release()
    if (opened != null) opened.close()
    files.foreach(_.delete())
  }

  // Bytes of blocks since the task spilled the last time: about what Spark's writer holds.
  private[this] var given = 0L
  private[this] var lastGiven = 0
  private[this] var spilledBefore = 0L

  // The thread that waits for the next batch, or that writes blocks. Others ask for memory while this
  // one uses the rows.
  private[this] var waiting: Thread = _
  private[this] var writing: Thread = _

  private[this] var batch: ColumnarBatch = _
  private[this] var batchRow = 0
  private[this] var blocks: Iterator[(Int, Int, ByteBuilder)] = Iterator.empty

  override def hasNext: Boolean = {
    while (!blocks.hasNext && (hasBatch || numOpened < files.size)) fill()
    blocks.hasNext
  }

  override def next(): Product2[Int, ByteBuilder] = {
    if (!hasNext) throw new NoSuchElementException
    val (partition, rows, block) = blocks.next()
    reportRows(rows - 1L)
    noteSpills()
    lastGiven = block.size
    given += lastGiven
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
        isFull = fits || leavesForWriter || writerMaySpill
        if (!isFull) spill()
      }
    }
    memory.release(forWriter)
    val written = files.drop(numOpened).toList
    numOpened = files.size
    unread = 0L
    val rest = drained()
    blocks = written.iterator.flatMap(blocksIn) ++ rest
    writing = Thread.currentThread
  }

  private def leavesForWriter: Boolean = {
    memory.release()
    memory.reserve(forWriter)
  }

  /**
   * Whether Spark's writer gets a page by spilling its own ones. It gets none if the others of the task
   * have more than its share, which is smaller since other tasks have begun. That is unlikely if it
   * holds the most. Beyond some bytes in files, blocks go to the writer in any case.
   */
  private def writerMaySpill: Boolean = {
    val others = TaskInternals.memory(context).getMemoryConsumptionForThisTask - given
    given > 0 && (others <= given || unread >= ColumnBlocks.MostUnread)
  }

  private def noteSpills(): Unit = {
    val spilled = context.taskMetrics().memoryBytesSpilled
    // The writer spills for a block, and keeps that one.
    if (spilled != spilledBefore) given = lastGiven
    spilledBefore = spilled
  }

  private def giveUp(): Unit = {
    val thread = Thread.currentThread
    if (waiting eq thread) {
      spill()
      memory.release()
    } else if (writing eq thread) {
      // Blocks need less than the rows did, and each is written soon.
      memory.release()
    }
  }

  private def drained(): Iterator[(Int, Int, ByteBuilder)] = {
    dataSize.add(runs.rowBytes)
    runs.rowBytes = 0
    if (runs.isEmpty) Iterator.empty else runs.drain()
  }

  /** Writes blocks of the rows so far to a file. */
  private def spill(): Unit = if (!runs.isEmpty) {
    try {
      val size = runs.size
      val blocks = drained()
      val file = TaskInternals.spillWriter(runs.numBlocks)
      files += file.getFile
      for ((partition, rows, block) <- blocks) {
        val prefix = partition.toLong << 32 | rows
        file.write(block.array, Platform.BYTE_ARRAY_OFFSET.toLong, block.size, prefix)
      }
      file.close()
      unread += size
      TaskInternals.reportSpill(context, size, file.getFile.length)
      spilledBefore = context.taskMetrics().memoryBytesSpilled
      memory.release()
    } catch {
      case e: Throwable =>
        // The operator that asked for memory may go on without it. No row may follow the lost ones.
        failure = new IOException("The rows of an exchange could not be spilled.", e)
        throw e
    }
  }

  private def blocksIn(file: File): Iterator[(Int, Int, ByteBuilder)] = {
    val records = TaskInternals.openSpilled(file)
    opened = records
    val block = new ByteBuilder(0)
    var left = records.readInt()
    new Iterator[(Int, Int, ByteBuilder)] {
      override def hasNext: Boolean = {
        if (left == 0) {
          records.close()
          file.delete()
        }
        left > 0
      }

      override def next(): (Int, Int, ByteBuilder) = {
        TaskInternals.endIfKilled(context)
        left -= 1
        val size = records.readInt()
        val prefix = records.readLong()
        block.clear()
        block.ensure(size)
        records.readFully(block.array, 0, size)
        block.size = size
        ((prefix >> 32).toInt, prefix.toInt, block)
      }
    }
  }

  private def isEnough(size: Long): Boolean =
    size >= ColumnBlocks.Most || (size >= ColumnBlocks.Few && (runs.fillsBlocks || runs.hasLongRows))

  /** What Spark's writer needs for the blocks. It fails if it does not get its first page. */
  private def forWriter: Long = runs.size + pageSize

  private def hasBatch: Boolean = {
    if (batch == null || batchRow == batch.numRows) nextBatch()
    batch != null && batchRow < batch.numRows
  }

  private def nextBatch(): Unit = {
    noteSpills()
    waiting = Thread.currentThread
    while ((batch == null || batchRow == batch.numRows) && batches.hasNext) {
      TaskInternals.endIfKilled(context)
      batch = batches.next()
      batchRow = 0
    }
    waiting = null
    if (failure != null) throw failure
    // Spills of operators below are not those of the writer.
    spilledBefore = context.taskMetrics().memoryBytesSpilled
  }
}

private object ColumnBlocks {

  /** With more bytes, the arrays of all tasks of an executor are in no cache. */
  private val Most = 32L << 20

  /** With fewer bytes, Spark's writer handles many small blocks, unless each row is large. */
  private val Few = 4L << 20

  /** So many bytes in files are enough, unless the writer would fail. */
  private val MostUnread = 64L << 20

  /** With fewer bytes, there would be too many files. They need no reserved memory. */
  private val Least = 1L << 20

  /** Memory is reserved in steps of so many bytes. */
  private val Reserved = 256L << 10

  // Rows of a batch, and bytes of one column of them, that are added before the next check of the
  // memory. A single row may have more bytes.
  private val ManyRows = 128
  private val AtOnce = 1 << 20
}
