package io.github.skewext.join.exec.grouping

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.skewext.{SparkShims, SpillableRowArray, TaskInternals}
import org.apache.spark.util.collection.unsafe.sort.{UnsafeExternalSorter, UnsafeSorterIterator, UnsafeSorterSpillWriter}

/**
 * Groups rows by an external merge sort. It sorts every input by the hash of its key with Spark's
 * external sorter, which spills, and merges the sorted inputs. Sorting by the hash is one radix
 * sort for any key type.
 *
 * A run is the rows of one hash. Rows of the run with another key than its first row (a collision)
 * are set aside in spillable arrays. They form groups of their own before the next run.
 *
 * Spark reads each spill file in a separate thread and through 4 MB of buffers that its memory
 * manager does not track. A merge reads the files of all inputs at once. So if there are more than
 * `MaxFiles`, the files of an input are merged to one file first.
 * {{{
 * val groups = new HashSortedGroups(keys, numFields, single, rowsInMemory, pageSize)
 * for (i <- inputs) { for (row <- i) groups.insert(i, hash, row...); groups.finishInput(i) }
 * while (groups.nextGroup()) do { use(groups.rows) } while (groups.nextCombination())
 * }}}
 */
private[skewext] final class HashSortedGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    single: Array[Boolean],
    groupRowsInMemory: Int,
    pageSize: Long)
    extends SortMergeGroups(numFields, single, groupRowsInMemory) {

  private[this] val sorters = new Array[UnsafeExternalSorter](n)
  private[this] val sortedInputs = sources
  private[this] val numRows = new Array[Long](n)
  private[this] val numFiles = new Array[Int](n)
  private[this] val merged = mutable.ArrayBuffer.empty[UnsafeSorterSpillWriter]
  private[this] var mergedBytes = 0L
  private[this] var runHash = 0L

  /** The first input of the current group. Its first row has the group's key. */
  private[this] var reference = 0

  // Two sets: grouping the rows of one set adds the remaining collisions to the other.
  private[this] var leftovers = new Array[SpillableRowArray](n)
  private[this] var nextLeftovers = new Array[SpillableRowArray](n)
  private[this] var anyLeftover = false

  /** Whether there is memory for the first sorter. */
  def canBegin: Boolean =
    try {
      begin(0)
      true
    } catch {
      case _: SparkOutOfMemoryError => false
    }

  private def begin(input: Int): Unit = if (sorters(input) == null) {
    sorters(input) = SparkShims.prefixSorter(TaskContext.get(), pageSize)
  }

  def insert(input: Int, hash: Long, base: AnyRef, offset: Long, size: Int): Unit = {
    begin(input)
    val sorter = sorters(input)
    val spilled = sorter.getSpillSize
    sorter.insertRecord(base, offset, size, hash, false)
    numRows(input) += 1
    if (sorter.getSpillSize != spilled) numFiles(input) += 1
  }

  /**
   * Ends the inserts of an input. Inputs are inserted one after the other, because a sorter can
   * spill for another one only while it is being read.
   */
  def finishInput(input: Int): Unit =
    if (sorters(input) != null && (sortedInputs(input) eq RowCursor.empty)) {
      val sorted = sorters(input).getSortedIterator
      // A spill file stores the number of its rows as an Int.
      val tooMany = numFiles.sum > HashSortedGroups.MaxFiles && numRows(input) <= Int.MaxValue
      val records = if (tooMany && numFiles(input) > 1) mergedToFile(input, sorted) else sorted
      sortedInputs(input) = RowCursor.sorted(records, numFields(input))
    }

  private def mergedToFile(input: Int, sorted: UnsafeSorterIterator): UnsafeSorterIterator = {
    val file = TaskInternals.spillWriter(numRows(input).toInt)
    merged += file
    while (sorted.hasNext) {
      sorted.loadNext()
      file.write(
        sorted.getBaseObject,
        sorted.getBaseOffset,
        sorted.getRecordLength,
        sorted.getKeyPrefix)
    }
    file.close()
    sorters(input).cleanupResources()
    numFiles(input) = 1
    mergedBytes += file.getFile.length()
    TaskInternals.reportSpill(TaskContext.get(), 0, file.getFile.length())
    TaskInternals.spillReader(file)
  }

  override def keyHasNull: Boolean = false

  override def free(): Unit = {
    super.free()
    (leftovers ++ nextLeftovers).foreach(array => if (array != null) array.clear())
    sorters.foreach(sorter => if (sorter != null) sorter.cleanupResources())
    merged.foreach(_.getFile.delete())
  }

  override def spillSize: Long =
    super.spillSize + mergedBytes +
      (leftovers.iterator ++ nextLeftovers).filter(_ != null).map(_.spillSize).sum +
      sorters.iterator.filter(_ != null).map(_.getSpillSize).sum

  override def peakMemory: Long =
    sorters.iterator.filter(_ != null).map(_.getPeakMemoryUsedBytes).sum

  override protected[this] def openGroup(): Boolean = {
    val opened = if (anyLeftover) {
      openLeftovers()
      true
    } else {
      sources = sortedInputs
      openNextRun()
    }
    if (opened) takeMembers()
    opened
  }

  private def openLeftovers(): Unit = {
    val opened = leftovers
    leftovers = nextLeftovers
    nextLeftovers = opened
    leftovers.foreach(array => if (array != null) array.clear())
    anyLeftover = false
    sources = opened.map { array =>
      if (array == null || array.isEmpty) RowCursor.empty else RowCursor.sameRun(array.iterator)
    }
  }

  /** Moves to the run with the lowest hash among the sources. */
  private def openNextRun(): Boolean = {
    var found = false
    var i = 0
    while (i < n) {
      val source = sources(i)
      if (source.live && (!found || source.prefix < runHash)) {
        found = true
        runHash = source.prefix
      }
      i += 1
    }
    found
  }

  /** Takes the first row of each input with the key of the run's first row. */
  private def takeMembers(): Unit = {
    reference = -1
    var i = 0
    while (i < n) {
      if (reference < 0) {
        if (inRun(sources(i))) {
          reference = i
          take(i)
        }
      } else if (seek(i)) {
        take(i)
      }
      i += 1
    }
  }

  /** Sets aside the rows with other keys that it passes. */
  override protected[this] def seek(input: Int): Boolean = {
    val source = sources(input)
    while (inRun(source)) {
      if (keys.equal(reference, first(reference), input, source.row)) {
        return true
      }
      if (leftovers(input) == null) {
        leftovers(input) = new SpillableRowArray(groupRowsInMemory)
      }
      leftovers(input).add(source.row)
      anyLeftover = true
      source.advance()
    }
    false
  }

  // A source of rows that were set aside has only rows of the run.
  private def inRun(source: RowCursor): Boolean =
    source.live && (source.oneRun || source.prefix == runHash)
}

private[skewext] object HashSortedGroups {

  /** Maximum number of spill files that a task reads at once, plus one per input. */
  val MaxFiles = 32
}
