package io.github.skewext.execution.grouping

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.{ShuffledColumns, SparkShims, TaskInternals}
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpillWriter

/**
 * Takes the rows of the inputs, one input after the other, and gives them back by key: by
 * [[HashedGroups]] as long as they fit in the task's memory, else by [[HashSortedGroups]], to which all
 * rows so far go over.
 *
 * Others of the same task may need memory while rows come in: an input that is aggregated or sorted
 * in the same stage. Then the rows so far are written to disk, which takes no memory, and are sorted
 * when all rows are here.
 *
 * @param giveUpRest frees what else the task keeps and can do without, if there is no memory for rows
 */
private[skewext] final class SpillableGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    single: Array[Boolean],
    settings: GroupingSettings,
    giveUpRest: () => Unit = () => ()) {

  private[this] val context = TaskContext.get()
  private[this] val pageSize = TaskInternals.memory(context).pageSizeBytes
  private[this] val sorterPageSize = math.min(SpillableGroups.SorterPageSize, pageSize)
  // Pages that operators above find when all rows are here, as hash tables cannot be spilled for
  // them: enough to begin with, then they spill themselves. Spark sizes pages so that a task's share
  // of the memory is at least 16 of them.
  private[this] val reserve = 3 * pageSize
  private[this] var hashes = Array.emptyLongArray
  private[this] val finished = new Array[Boolean](numFields.length)
  private[this] val chunks = RowChunks(numFields.length, context)
  private[this] val hashed = new HashedGroups(keys, numFields, single, chunks)
  private[this] var sorted: HashSortedGroups = _
  private[this] val written = mutable.ArrayBuffer.empty[(Int, UnsafeSorterSpillWriter)]
  private[this] var bytesWritten = 0L

  context.addTaskCompletionListener[Unit](_ => free())
  keeping {
    chunks.whenAskedForMemory(() => write())
    if (settings.sortAlways || !chunks.reserve(reserve)) goOver()
  }

  /** While rows are brought: no other thread takes them away. */
  def keeping[T](body: => T): T = chunks.keeping(body)

  def insert(input: Int, hash: Long, row: UnsafeRow): Unit = {
    if (sorted == null) {
      if (chunks.numRows < settings.maxRowsInMemory && chunks.insert(input, hash, row)) return
      goOver()
    }
    if (!inserted(input, hash, row)) {
      // What has no other memory than what the rows leave to it must not take all of it.
      giveUpRest()
      if (!inserted(input, hash, row)) {
        throw SparkShims.outOfMemory(s"There is no memory for one row of input $input.")
      }
    }
  }

  /**
   * Takes rows of an input column by column, if they come as blocks: those of whole ones, as long as they
   * are kept in memory and no key has a null. Gives how many it took; what comes next is to be inserted
   * by row.
   */
  def insertBlocks(input: Int, rows: Iterator[InternalRow]): Long = rows match {
    case columns: ShuffledColumns => insertColumns(input, columns)
    case _ => 0L
  }

  private def insertColumns(input: Int, rows: ShuffledColumns): Long = {
    var taken = 0L
    var block = rows.block
    while (block != null) {
      if (hashes.length < block.numRows) hashes = new Array[Long](2 * block.numRows)
      if (sorted == null && chunks.numRows + block.numRows <= settings.maxRowsInMemory &&
        block.isOfShortRows && keys.hash(input, block, hashes)) {
        block.takeUntil(chunks.insert(input, block, hashes))
        taken += block.taken
      }
      block = if (block.hasNext) null else rows.block
    }
    taken
  }

  private def inserted(input: Int, hash: Long, row: UnsafeRow): Boolean =
    if (sorted == null) {
      chunks.insert(input, hash, row)
    } else {
      try {
        sorted.insert(input, hash, row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
        true
      } catch {
        case _: SparkOutOfMemoryError => false
      }
    }

  def finishInput(input: Int): Unit = {
    finished(input) = true
    if (sorted != null) sorted.finishInput(input)
  }

  /** All inputs are finished: their rows by key. */
  def result(): KeyGroups = {
    if (sorted == null && (written.nonEmpty || !hashed.finish())) sortAll()
    if (sorted == null) {
      chunks.releaseReserve()
      hashed
    } else {
      sorted
    }
  }

  /** Frees memory and files: of rows that are through, or that nobody asks for any more. */
  def free(): Unit = {
    hashed.free()
    if (sorted != null) sorted.free()
    written.foreach(_._2.getFile.delete())
    written.clear()
  }

  // Going over, rows leave the one as they come to the other.
  def peakMemory: Long = math.max(hashed.peakMemory, if (sorted == null) 0L else sorted.peakMemory)

  def spillSize: Long = bytesWritten + (if (sorted == null) 0L else sorted.spillSize)

  /** From hashing to sorting; to the disk, where there is no memory to sort with. */
  private def goOver(): Unit = {
    chunks.releaseReserve()
    if (written.isEmpty && chunks.reserve(2 * sorterPageSize)) sortAll() else write()
  }

  private def sortAll(): Unit = {
    if (written.nonEmpty) write()
    sorted =
      new HashSortedGroups(keys, numFields, single, settings.groupRowsInMemory, sorterPageSize)
    chunks.releaseReserve()
    // Another task may have taken what was given up for the first sorter.
    if (written.isEmpty && !sorted.canBegin) write()
    var last = -1
    def take(input: Int, hash: Long, base: AnyRef, offset: Long, size: Int): Unit = {
      // A finished input's sorter can be spilled for the memory of the next one.
      if (input != last && last >= 0) sorted.finishInput(last)
      last = input
      sorted.insert(input, hash, base, offset, size)
    }
    if (written.isEmpty) drainTo(take)
    for ((input, file) <- written) {
      val rows = TaskInternals.spillReader(file)
      while (rows.hasNext) {
        rows.loadNext()
        take(input, rows.getKeyPrefix, rows.getBaseObject, rows.getBaseOffset, rows.getRecordLength)
      }
      file.getFile.delete()
    }
    written.clear()
    hashed.free()
    finished.indices.filter(finished(_)).foreach(sorted.finishInput)
  }

  /**
   * Gives the rows in memory to a sorter. Others may take what is freed before the sorter does: rows for
   * which it has no memory then go to files, until all of that is free.
   */
  private def drainTo(take: (Int, Long, AnyRef, Long, Int) => Unit): Unit = {
    val taken = new Array[Int](numFields.length)
    var full = false
    writing(input => chunks.numRowsOf(input) - taken(input)) { files =>
      chunks.drain { (input, hash, base, offset, size) =>
        if (!full) {
          try {
            take(input, hash, base, offset, size)
            taken(input) += 1
          } catch {
            case _: SparkOutOfMemoryError => full = true
          }
        }
        if (full) files.add(input, hash, base, offset, size)
      }
    }
  }

  /** Writes the rows in memory to files, one for each input, and frees their memory. */
  private def write(): Unit = {
    chunks.releaseReserve()
    writing(chunks.numRowsOf(_))(files => chunks.drain(files.add))
  }

  /** Rows by inputs, in files with so many rows of each. */
  private final class Files(rowsOf: Int => Int) {
    private[this] var last = -1

    def add(input: Int, hash: Long, base: AnyRef, offset: Long, size: Int): Unit = {
      if (input != last) {
        close()
        last = input
        written += input -> TaskInternals.spillWriter(rowsOf(input))
      }
      written.last._2.write(base, offset, size, hash)
    }

    def close(): Unit = if (last >= 0) written.last._2.close()
  }

  private def writing(rowsOf: Int => Int)(body: Files => Unit): Unit = {
    val inMemory = chunks.getUsed
    val filesBefore = written.size
    val files = new Files(rowsOf)
    body(files)
    files.close()
    if (written.size > filesBefore) {
      val onDisk = written.drop(filesBefore).map(_._2.getFile.length()).sum
      bytesWritten += onDisk
      TaskInternals.reportSpill(context, inMemory, onDisk)
    }
  }
}

private[skewext] object SpillableGroups {

  /** As in [[RowChunks]]. */
  private val SorterPageSize = (1L << 22) - Platform.LONG_ARRAY_OFFSET
}

/**
 * @param sortAlways whether to sort from the start
 * @param maxRowsInMemory rows that a task hashes before it sorts
 * @param groupRowsInMemory rows of one input and key that a task that sorts keeps on the heap
 */
private[skewext] case class GroupingSettings(
    sortAlways: Boolean,
    maxRowsInMemory: Long,
    groupRowsInMemory: Int)
