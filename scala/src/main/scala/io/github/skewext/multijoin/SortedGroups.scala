package io.github.skewext.multijoin

import org.apache.spark.TaskContext
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.util.collection.unsafe.sort.UnsafeExternalSorter

/**
 * Groups rows by sorting every input by the hash of its key with Spark's external sorter, which
 * spills, and merging the sorted inputs. A run is the rows of one hash. Sorting by the hash is one
 * radix sort, whatever the key's type.
 * {{{
 * val groups = new SortedGroups(keys, numFields, single, rowsInMemory, pageSize)
 * for (i <- inputs) { for (row <- i) groups.insert(i, hash, row...); groups.finishInput(i) }
 * while (groups.nextGroup()) do { use(groups.rows) } while (groups.nextCombination())
 * }}}
 */
private[multijoin] final class SortedGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    single: Array[Boolean],
    groupRowsInMemory: Int,
    pageSize: Long)
    extends MergedGroups(keys, numFields, single, groupRowsInMemory) {

  private[this] val sorters = new Array[UnsafeExternalSorter](n)
  private[this] var runHash = 0L

  def insert(input: Int, hash: Long, base: AnyRef, offset: Long, size: Int): Unit = {
    if (sorters(input) == null) {
      sorters(input) = TaskInternals.prefixSorter(TaskContext.get(), pageSize)
    }
    sorters(input).insertRecord(base, offset, size, hash, false)
  }

  /**
   * No more rows of this input come. Inputs are inserted one after the other, as a sorter can be
   * spilled on behalf of another only when it is being read.
   */
  def finishInput(input: Int): Unit =
    if (sorters(input) != null && (mainSources(input) eq RunSource.empty)) {
      mainSources(input) = RunSource.sorted(sorters(input).getSortedIterator, numFields(input))
    }

  override def free(): Unit = {
    super.free()
    sorters.foreach(sorter => if (sorter != null) sorter.cleanupResources())
  }

  override def spillSize: Long =
    super.spillSize + sorters.iterator.filter(_ != null).map(_.getSpillSize).sum

  override def peakMemory: Long =
    sorters.iterator.filter(_ != null).map(_.getPeakMemoryUsedBytes).sum

  /** The run of the lowest hash that a source stands at. */
  override protected[this] def openNextRun(): Boolean = {
    var found = false
    var i = 0
    while (i < n) {
      val source = mainSources(i)
      if (source.live && (!found || source.hash < runHash)) {
        found = true
        runHash = source.hash
      }
      i += 1
    }
    found
  }

  // A source of rows that were set aside has no other rows than those of the run.
  override protected[this] def inRun(source: RunSource): Boolean =
    source.live && (source.oneRun || source.hash == runHash)

  override protected[this] def runHasNull: Boolean = false
}
