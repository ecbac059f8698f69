package io.github.skewext.rows

import scala.collection.mutable

import io.github.skewext.platform.SkewConf
import io.github.skewext.shuffle.{ColumnBlockRows, ShuffledColumns}

import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SparkShims, TaskInternals}
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpillWriter

/**
 * Collects the rows of the inputs and returns them grouped by key. If they do not fit into memory,
 * it uses [[HashSortedGroups]].
 */
private[skewext] final class SpillableGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    single: Array[Boolean],
    settings: GroupingSettings,
    giveUpRest: () => Unit = () => ())
    extends SpillableRows(keys, numFields, single, settings, giveUpRest) {

  private[this] var merged: HashSortedGroups = _

  /** Returns the rows grouped by key. All inputs must be finished. */
  def result(): KeyGroups = collected().fold(groups => groups, grouped(_, streams = -1))

  /**
   * The same after `tableOf` has returned no table, so the rows are sorted.
   *
   * @param streams see [[SortMergeGroups]].
   */
  def sortedResult(streams: Int = -1): SortMergeGroups = grouped(collected().toOption.get, streams)

  private def grouped(sorted: Array[RowCursor], streams: Int): SortMergeGroups = {
    merged =
      new HashSortedGroups(keys, numFields, single, settings.groupRowsInMemory, sorted, streams)
    merged
  }

  override protected def free(): Unit = {
    super.free()
    if (merged != null) merged.free()
  }

  override def spillSize: Long = super.spillSize + (if (merged == null) 0L else merged.spillSize)
}

/**
 * Collects the rows of the inputs, one input after the other. It uses [[HashedGroups]] as long as the
 * rows fit into the task's memory. Then it moves all rows to [[InputSorters]].
 *
 * Other operators of the task may need memory during the inserts, such as an aggregate or a sort of
 * an input in the same stage. Then the rows inserted so far are written to disk, which needs no
 * memory, and are sorted after the last insert.
 *
 * @param giveUpRest frees memory that the task can do without, if there is none for rows.
 * @param order the order in which the sorters return the rows of one hash, if it matters.
 * @param longsPerRow size of `HashedGroups.space` for each row of the largest bucket.
 */
private[skewext] class SpillableRows(
    keys: JoinKeys,
    numFields: Array[Int],
    single: Array[Boolean],
    settings: GroupingSettings,
    giveUpRest: () => Unit = () => (),
    order: Option[KeyOrder] = None,
    longsPerRow: Int = 0) {

  private[this] val context = TaskContext.get()
  // Nothing would free memory that is acquired after the end of the task.
  TaskInternals.endIfKilled(context)
  private[this] val pageSize = TaskInternals.memory(context).pageSizeBytes
  // Memory that operators above find free after the last insert, because hash tables cannot be
  // spilled for them. It is enough to begin with; then these operators spill themselves. Spark
  // sizes pages so that a task's share of the memory is at least 16 pages.
  private[this] val reserve = 3 * pageSize
  private[this] var hashes = Array.emptyLongArray
  private[this] val finished = new Array[Boolean](numFields.length)
  private[this] val chunks = RowChunks(numFields.length, context)
  private[this] val hashed = new HashedGroups(keys, numFields, single, chunks, longsPerRow)
  private[this] var sorted: Option[InputSorters] = None
  private[this] var built: BuildTable = _
  private[this] val written = mutable.ArrayBuffer.empty[(Int, UnsafeSorterSpillWriter)]
  private[this] var bytesWritten = 0L

  private[this] val end = TaskInternals.atEnd(context) {
    chunks.stopInserts()
    TaskInternals.reportPeakMemory(context, peakMemory)
    free()
  }
  keeping {
    chunks.whenAskedForMemory(() => write())
    if (settings.sortAlways || !chunks.reserve(reserve)) goOver()
  }

  /** Runs `body`, which inserts rows. No other thread can spill the rows meanwhile. */
  def keeping[T](body: => T): T = chunks.keeping(body)

  def insert(input: Int, hash: Long, row: UnsafeRow): Unit = {
    if (sorted.isEmpty) {
      if (chunks.numRows < settings.maxRowsInMemory && chunks.insert(input, hash, row)) return
      goOver()
    }
    if (!inserted(input, hash, row)) {
      // Free memory that the task can do without, rather than fail.
      giveUpRest()
      if (!inserted(input, hash, row)) {
        throw SparkShims.outOfMemory(s"There is no memory for one row of input $input.")
      }
    }
  }

  /**
   * Inserts the rows of an input by whole blocks of columns, if the input returns such blocks. It
   * stops at a block with a null key, or when rows no longer fit into memory. Returns the number of
   * rows taken. The caller inserts the next row by itself.
   *
   * @param added gets the hashes of the rows, or null
   * @param wanted rows whose hashes it cannot have may be left out; null for none
   */
  def insertBlocks(
      input: Int,
      rows: Iterator[InternalRow],
      added: KeyFilter = null,
      wanted: KeyFilter = null): Long = rows match {
    case columns: ShuffledColumns => insertColumns(input, columns, added, wanted)
    case _ => 0L
  }

  private def insertColumns(
      input: Int,
      rows: ShuffledColumns,
      added: KeyFilter,
      wanted: KeyFilter): Long = {
    var taken = 0L
    var block = rows.block
    while (block != null) {
      if (hashes.length < block.numRows) hashes = new Array[Long](2 * block.numRows)
      val fits = sorted.isEmpty && block.isOfShortRows &&
        chunks.numRows + block.numRows <= settings.maxRowsInMemory
      if ((fits || wanted != null) && keys.hash(input, block, hashes)) {
        if (wanted != null && areFew(block.numRows, wanted)) {
          insertWanted(input, block, wanted)
          taken += block.taken
        } else if (fits) {
          block.takeUntil(chunks.insert(input, block, hashes))
          taken += block.taken
          if (added != null) {
            var i = 0
            while (i < block.taken) {
              added.add(hashes(i))
              i += 1
            }
          }
        }
      }
      block = if (block.hasNext) null else rows.block
    }
    taken
  }

  /** Whether so few rows are wanted that building them one by one takes less than a block's copy. */
  private def areFew(numRows: Int, wanted: KeyFilter): Boolean = {
    val many = numRows / 2
    var found = 0
    var i = 0
    while (i < numRows && found < many) {
      if (wanted.mayHave(hashes(i))) found += 1
      i += 1
    }
    found < many
  }

  /** Builds and inserts only the rows that are wanted. */
  private def insertWanted(input: Int, block: ColumnBlockRows, wanted: KeyFilter): Unit = {
    var i = 0
    while (i < block.numRows) {
      if (wanted.mayHave(hashes(i))) {
        insert(input, hashes(i), block.rowAt(i))
      }
      i += 1
    }
    block.takeAll()
  }

  private def inserted(input: Int, hash: Long, row: UnsafeRow): Boolean =
    if (sorted.isEmpty) {
      chunks.insert(input, hash, row)
    } else {
      chunks.checkIntact()
      try {
        sorted.get.insert(input, hash, row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
        true
      } catch {
        case _: SparkOutOfMemoryError => false
      }
    }

  def finishInput(input: Int): Unit = {
    finished(input) = true
    sorted.foreach(_.finishInput(input))
  }

  /** Returns the rows in hash tables or sorted. All inputs must be finished. */
  def collected(): Either[HashedGroups, Array[RowCursor]] = {
    if (sorted.isEmpty && (written.nonEmpty || !hashed.finish())) sortAll()
    if (sorted.isEmpty && !leavesMemory()) sortAll()
    sorted.map(_.cursors).toRight(hashed)
  }

  /**
   * Ends the inserts if all rows, which are of one input, are in memory, and returns a table of
   * them. If there is no memory for the table, it returns none, the rows are sorted, and the rows
   * of other inputs can be inserted.
   */
  def tableOf(input: Int): Option[BuildTable] = {
    val table = new BuildTable(input, chunks)
    if (sorted.isDefined || written.nonEmpty) {
      None
    } else {
      chunks.seal()
      if (table.allocate() && leavesMemory()) {
        table.fill(() => TaskInternals.endIfKilled(context))
        built = table
        Some(table)
      } else {
        table.free()
        sortAll()
        None
      }
    }
  }

  /** Number of bytes of the rows in memory. */
  def bytesInMemory: Long = chunks.getUsed

  /** Whether others of the task can have the reserve. Not if it has got a smaller share since. */
  private def leavesMemory(): Boolean = {
    chunks.releaseReserve()
    val leaves = chunks.reserve(reserve)
    chunks.releaseReserve()
    leaves
  }

  /**
   * Ends the use of the rows before the task ends, which may go on with other partitions, as in a
   * coalesced RDD.
   */
  def close(): Unit = {
    if (end.run()) chunks.dropBuckets()
  }

  /** Frees memory and files, also if groups remain unread. */
  protected def free(): Unit = {
    if (built != null) built.free()
    built = null
    hashed.free()
    sorted.foreach(_.free())
    written.foreach(_._2.getFile.delete())
    written.clear()
  }

  // A move to the sorters frees memory while it acquires memory, so the peaks do not add up.
  def peakMemory: Long = math.max(hashed.peakMemory, sorted.fold(0L)(_.peakMemory))

  def spillSize: Long = bytesWritten + sorted.fold(0L)(_.spillSize)

  /**
   * Switches from hashing to sorting. If there is no memory to sort, it writes the rows to disk.
   */
  private def goOver(): Unit = {
    chunks.releaseReserve()
    if (written.isEmpty && chunks.reserve(2 * chunks.nextPageSize)) sortAll() else write()
  }

  private def sortAll(): Unit = {
    if (written.nonEmpty) write()
    val target = new InputSorters(numFields, chunks.nextPageSize, order)
    sorted = Some(target)
    chunks.releaseReserve()
    // Another task may have acquired the memory that was released for the first sorter.
    if (written.isEmpty && !target.canBegin) write()
    var last = -1
    def take(input: Int, hash: Long, base: AnyRef, offset: Long, size: Int): Unit = {
      // A finished sorter can spill when the next one needs memory.
      if (input != last && last >= 0) target.finishInput(last)
      last = input
      target.insert(input, hash, base, offset, size)
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
    finished.indices.filter(finished(_)).foreach(target.finishInput)
  }

  /**
   * Moves the rows in memory to a sorter. Other consumers may acquire the freed memory before the
   * sorter does. From the first row without memory in the sorter on, the rows go to files.
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

  /**
   * Writes rows to one file per input. `rowsOf` returns the number of rows in the file of an input.
   */
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

/**
 * @param sortAlways whether to sort from the start, without hash tables.
 * @param maxRowsInMemory number of rows that a task hashes before it switches to sorting.
 * @param groupRowsInMemory number of rows of one input and key that a sorting task keeps on the
 *                          heap.
 */
private[skewext] case class GroupingSettings(
    sortAlways: Boolean,
    maxRowsInMemory: Long,
    groupRowsInMemory: Int)

private[skewext] object GroupingSettings {
  def of(conf: SQLConf): GroupingSettings = GroupingSettings(
    sortAlways = conf.getConf(SkewConf.MULTI_JOIN_GROUPING) == "sort",
    maxRowsInMemory = conf.getConf(SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY),
    groupRowsInMemory = conf.getConf(SkewConf.MULTI_JOIN_GROUP_ROWS_IN_MEMORY))
}
