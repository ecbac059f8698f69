package io.github.skewext.multijoin

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.TaskInternals

/**
 * Takes the rows of the inputs, one input after the other, and gives them back by key: by
 * [[HashedGroups]] as long as they fit in the task's memory, else by [[SortedGroups]], to which all
 * rows so far go over.
 */
private[multijoin] final class SpillableGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    settings: GroupingSettings) {

  private[this] val context = TaskContext.get()
  private[this] val pageSize = TaskInternals.memory(context).pageSizeBytes
  private[this] val sorterPageSize = math.min(SpillableGroups.SorterPageSize, pageSize)
  // Pages that operators above find when all rows are here, as hash tables cannot be spilled for
  // them: enough to begin with, then they spill themselves. Spark sizes pages so that a task's share
  // of the memory is at least 16 of them.
  private[this] val reserve = 3 * pageSize
  private[this] val finished = new Array[Boolean](numFields.length)
  private[this] val hashed = HashedGroups(keys, numFields, context)
  private[this] var sorted: SortedGroups = _

  context.addTaskCompletionListener[Unit](_ => hashed.free())
  if (settings.sortAlways || !hashed.reserve(reserve)) goOver()

  def insert(input: Int, hash: Long, row: UnsafeRow): Unit = {
    if (sorted == null) {
      if (hashed.numRows < settings.maxRowsInMemory && hashed.insert(input, hash, row)) return
      goOver()
    }
    sorted.insert(input, hash, row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
  }

  def finishInput(input: Int): Unit = {
    finished(input) = true
    if (sorted != null) sorted.finishInput(input)
  }

  /** All inputs are finished: their rows by key. */
  def result(): KeyGroups = {
    if (sorted == null && !hashed.finish()) goOver()
    if (sorted == null) {
      hashed.releaseReserve()
      hashed
    } else {
      sorted
    }
  }

  def peakMemory: Long = hashed.peakMemory + (if (sorted == null) 0L else sorted.peakMemory)

  def spillSize: Long = if (sorted == null) 0L else sorted.spillSize

  private def goOver(): Unit = {
    sorted = new SortedGroups(keys, numFields, settings.groupRowsInMemory, sorterPageSize)
    hashed.releaseReserve()
    var last = -1
    hashed.drain { (input, hash, base, offset, size) =>
      // A finished input's sorter can be spilled for the memory of the next one.
      if (input != last && last >= 0) sorted.finishInput(last)
      last = input
      sorted.insert(input, hash, base, offset, size)
    }
    hashed.free()
    finished.indices.filter(finished(_)).foreach(sorted.finishInput)
  }
}

private[multijoin] object SpillableGroups {
  private val SorterPageSize = 1L << 22
}

/**
 * @param sortAlways whether to sort from the start
 * @param maxRowsInMemory rows that a task hashes before it sorts
 * @param groupRowsInMemory rows of one input and key that a task that sorts keeps on the heap
 */
private[multijoin] case class GroupingSettings(
    sortAlways: Boolean,
    maxRowsInMemory: Long,
    groupRowsInMemory: Int)
