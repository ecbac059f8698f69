package io.github.skewext.execution.grouping

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.skewext.{SpillableRowArray, TaskInternals}
import org.apache.spark.util.collection.unsafe.sort.{UnsafeExternalSorter, UnsafeSorterIterator, UnsafeSorterSpillWriter}

/**
 * Groups rows by sorting every input by the hash of its key with Spark's external sorter, which
 * spills, and merging the sorted inputs. Sorting by the hash is one radix sort, whatever the key's
 * type. A run is the rows of one hash; those of it that do not have the key of its first row (a
 * collision) are set aside, in spillable arrays, and form groups of their own before the next run is
 * looked at.
 *
 * A spill file is read through buffers of 4 MB that nobody accounts for, by a thread of its own, and here
 * the files of all inputs are read at a time. So an input whose files would be too many with those of the
 * others is merged to one file first.
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

  /** The first input of the current group; its first row has the group's key. */
  private[this] var reference = 0

  // Two sets, as groups that are formed of one set rows aside to the other.
  private[this] var leftovers = new Array[SpillableRowArray](n)
  private[this] var nextLeftovers = new Array[SpillableRowArray](n)
  private[this] var anyLeftover = false

  /** Whether there is memory for the first row. */
  def canBegin: Boolean =
    try {
      begin(0)
      true
    } catch {
      case _: SparkOutOfMemoryError => false
    }

  private def begin(input: Int): Unit = if (sorters(input) == null) {
    sorters(input) = TaskInternals.prefixSorter(TaskContext.get(), pageSize)
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
   * No more rows of this input come. Inputs are inserted one after the other, as a sorter can be
   * spilled on behalf of another only when it is being read.
   */
  def finishInput(input: Int): Unit =
    if (sorters(input) != null && (sortedInputs(input) eq RowCursor.empty)) {
      val sorted = sorters(input).getSortedIterator
      // A file tells the number of its rows as an Int.
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

  /** Goes to the run of the lowest hash that a source stands at. */
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

  /** Takes the first row of every input that has the key of the first one in the run. */
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

  /** Sets rows of other keys aside on its way. */
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

  // A source of rows that were set aside has no other rows than those of the run.
  private def inRun(source: RowCursor): Boolean =
    source.live && (source.oneRun || source.prefix == runHash)
}

private[skewext] object HashSortedGroups {

  /** Of a task's spill files that are read at a time, besides one for each input. */
  val MaxFiles = 32
}
