package io.github.skewext.rows

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.{SparkShims, TaskInternals}
import org.apache.spark.util.collection.unsafe.sort.{RecordComparator, UnsafeExternalSorter, UnsafeSorterIterator, UnsafeSorterSpillWriter}

/**
 * Sorts the rows of the inputs by the hashes of their keys, with one external sorter of Spark for each
 * input. Without a further order this is one radix sort for keys of any type.
 *
 * Inputs are inserted one after the other, because a sorter can spill for another one only while it
 * is being read.
 *
 * Spark reads each spill file in a separate thread and through 4 MB of buffers that its memory
 * manager does not track. A merge reads the files of all inputs at once. So if there are more than
 * `MaxFiles`, the files of an input are merged to one file first.
 *
 * @param order the order of rows with equal hashes, if it matters.
 */
private[skewext] final class InputSorters(
    numFields: Array[Int],
    pageSize: Long,
    order: Option[KeyOrder]) {

  import InputSorters._

  private[this] val n = numFields.length

  /** The sorted rows of each input, once it is finished. Their prefixes are the hashes. */
  val cursors: Array[RowCursor] = Array.fill(n)(RowCursor.empty)

  private[this] val sorters = new Array[UnsafeExternalSorter](n)
  private[this] val finished = new Array[Boolean](n)
  private[this] val numRows = new Array[Long](n)
  private[this] val numFiles = new Array[Int](n)
  private[this] val bytesInMemory = new Array[Long](n)
  private[this] var allInMemory = 0L
  private[this] val merged = mutable.ArrayBuffer.empty[UnsafeSorterSpillWriter]
  private[this] var mergedBytes = 0L

  /** Whether there is memory for the first sorter. */
  def canBegin: Boolean =
    try {
      begin(0)
      true
    } catch {
      case _: SparkOutOfMemoryError => false
    }

  private def begin(input: Int): Unit = if (sorters(input) == null) {
    val withinHash = order.map(new InOrder(_, input, numFields(input)))
    sorters(input) = SparkShims.prefixSorter(TaskContext.get(), pageSize, withinHash)
  }

  def insert(input: Int, hash: Long, base: AnyRef, offset: Long, size: Int): Unit = {
    begin(input)
    val sorter = sorters(input)
    val spilled = sorter.getSpillSize
    sorter.insertRecord(base, offset, size, hash, false)
    numRows(input) += 1
    // A page has no second record of more than its half.
    val used = if (size > pageSize / 2) math.max(size, pageSize) else size + RecordHeader
    bytesInMemory(input) += used
    allInMemory += used
    if (sorter.getSpillSize != spilled) noteFile(input)
    // Spark would end the task at the last page that it can number.
    if (allInMemory > MaxPages * pageSize) spillLargest()
  }

  private def noteFile(input: Int): Unit = {
    numFiles(input) += 1
    noteWritten(input)
  }

  private def noteWritten(input: Int): Unit = {
    allInMemory -= bytesInMemory(input)
    bytesInMemory(input) = 0
  }

  private def spillLargest(): Unit = {
    val largest = (0 until n).maxBy(bytesInMemory(_))
    // Its iterator writes the records of a finished input, when another consumer needs memory.
    if (finished(largest)) sorters(largest).spill(Long.MaxValue, null) else sorters(largest).spill()
    noteFile(largest)
  }

  /** Ends the inserts of an input. */
  def finishInput(input: Int): Unit = if (sorters(input) != null && !finished(input)) {
    finished(input) = true
    val sorted = sorters(input).getSortedIterator
    // A spill file stores the number of its rows as an Int.
    val tooMany = numFiles.sum > MaxFiles && numRows(input) <= Int.MaxValue
    cursors(input) = RowCursor.sorted(
      if (tooMany && numFiles(input) > 1) mergedToFile(input, sorted) else sorted,
      numFields(input))
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
    noteWritten(input)
    mergedBytes += file.getFile.length()
    TaskInternals.reportSpill(TaskContext.get(), 0, file.getFile.length())
    TaskInternals.spillReader(file)
  }

  /** Frees memory and files. */
  def free(): Unit = {
    sorters.foreach(sorter => if (sorter != null) sorter.cleanupResources())
    merged.foreach(_.getFile.delete())
  }

  /** Bytes written to disk so far. */
  def spillSize: Long = mergedBytes + sorters.iterator.filter(_ != null).map(_.getSpillSize).sum

  /** Peak memory in bytes. */
  def peakMemory: Long = sorters.iterator.filter(_ != null).map(_.getPeakMemoryUsedBytes).sum
}

private[skewext] object InputSorters {

  /** Maximum number of spill files that a task reads at once, plus one per input. */
  val MaxFiles = 32

  /** Number of full pages of all sorters. Spark numbers 8,192 in a task, see [[RowChunks]]. */
  private val MaxPages = 2500L

  private val RecordHeader = 8

  private final class InOrder(order: KeyOrder, input: Int, numFields: Int)
      extends RecordComparator {
    private[this] val left, right = new UnsafeRow(numFields)

    override def compare(
        leftBase: AnyRef,
        leftOffset: Long,
        leftLength: Int,
        rightBase: AnyRef,
        rightOffset: Long,
        rightLength: Int): Int = {
      left.pointTo(leftBase, leftOffset, leftLength)
      right.pointTo(rightBase, rightOffset, rightLength)
      order.compare(input, left, input, right)
    }
  }
}
