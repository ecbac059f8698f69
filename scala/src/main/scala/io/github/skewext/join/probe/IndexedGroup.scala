package io.github.skewext.join.probe

import io.github.skewext.join.range.RangeMatch
import io.github.skewext.rows.{BuildTable, KillCheck, RowChunks, SortMergeGroups}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, UnsafeRow}
import org.apache.spark.sql.skewext.TaskInternals

/**
 * The output rows of a group that is searched by the range in the condition of the join, after rows
 * have been sorted because the build side did not fit into memory.
 *
 * The rows of one key do fit, in most cases. So the inner rows of the group are copied to a
 * [[BuildTable]] with one chain, which [[ChainRanges]] searches as in a join that does not spill.
 * Each outer row is tested with its candidates.
 */
private[probe] final class IndexedGroup(
    groups: SortMergeGroups,
    kind: PairKind,
    condition: BasePredicate,
    range: RangeMatch,
    numFields: Array[Int],
    pair: PairRows,
    context: TaskContext) {
  import IndexedGroup._

  private[this] val memory = TaskInternals.memory(context)
  private[this] val killed = new KillCheck(context)
  private[this] val chunks = new RowChunks(1, memory, PageSize)
  private[this] val table = new BuildTable(0, chunks, isOneChain = true)
  private[this] val rows = numFields.map(new UnsafeRow(_))

  /** For each side, the search in its rows. */
  private[this] val ranges = new Array[ChainRanges](2)

  // The group.
  private[this] var outer = 0
  private[this] var inner = 1
  private[this] var innerRow: UnsafeRow = _
  private[this] var search: ChainRanges = _
  private[this] var first = 0L

  /** Whether inner rows of the group need marks. */
  private[this] var marks = false
  private[this] var numIndexed = 0L

  // The outer row, and the next record that is tested with it; 0 if there is none.
  private[this] var hasOuter = false
  private[this] var pending = false
  private[this] var matched = false
  private[this] var byRange = false
  private[this] var record = 0L

  /**
   * Makes the index of the current group. Returns false if the group has few rows, or if there is no
   * memory. Then the group is as before.
   */
  def open(): Boolean = {
    outer = groups.outer
    inner = 1 - outer
    innerRow = rows(inner)
    marks = kind.showsAny(inner)
    hasOuter = groups.numInner >= ChainRanges.LongChain && {
      val fits = copied() && indexed() && leavesMemory
      if (fits) numIndexed += 1 else free()
      fits
    }
    if (hasOuter) beginOuter()
    hasOuter
  }

  private def copied(): Boolean = {
    val inserted = groups.innerRows
    var fits = true
    while (fits && inserted.hasNext) {
      killed.check()
      fits = chunks.insert(0, 0L, inserted.next())
    }
    if (fits) chunks.seal()
    fits && table.allocate()
  }

  private def indexed(): Boolean = {
    table.fill(() => killed.check())
    first = table.first(0L)
    if (ranges(inner) == null) {
      ranges(inner) = new ChainRanges(table, inner, range.sides, pair, innerRow, context)
    }
    search = ranges(inner)
    search.index(first)
  }

  /** Whether operators above can begin, which the index cannot give memory to. A page is no matter. */
  private def leavesMemory: Boolean = {
    val page = memory.pageSizeBytes
    chunks.getUsed <= page || {
      val leaves = chunks.reserve(3 * page)
      chunks.releaseReserve()
      leaves
    }
  }

  /** Moves to the next row of the output. Returns false after the last of the group. */
  def advance(): Boolean = {
    while (hasOuter) {
      killed.check()
      if (record != 0) {
        if (testRecord()) return true
      } else if (pending) {
        pending = false
        if (kind.shows(outer, matched)) {
          pair.showAlone(outer, groups.rows(outer), matched)
          return true
        }
      } else {
        hasOuter = groups.nextOuter()
        if (hasOuter) beginOuter()
      }
    }
    nextInner()
  }

  private def beginOuter(): Unit = {
    matched = false
    pending = true
    pair.show(outer, groups.rows(outer))
    byRange = search.open(first)
    record = if (byRange) search.nextRecord() else first
    table.beginChain()
  }

  /** Tests the outer row with a record. Returns whether the output has the pair. */
  private def testRecord(): Boolean = {
    val current = record
    table.pointTo(innerRow, current)
    pair.show(inner, innerRow)
    val dropsMarked = !kind.pairs && inner == 0
    val isMatch = !(dropsMarked && table.isMarked(current)) && condition.eval(pair)
    if (isMatch) {
      matched = true
      if (marks) table.mark(current)
    }
    if (dropsMarked) dropMarked(current)
    // A join that does not return pairs returns each row of the left side at most once.
    record =
      if (isMatch && !kind.pairs && outer == 0) 0
      else if (byRange) search.nextRecord()
      else table.next(current)
    isMatch && kind.pairs
  }

  private def dropMarked(current: Long): Unit =
    if (!byRange) table.dropMarked(current)
    else if (table.isMarked(current)) search.dropLast()

  private def nextInner(): Boolean = {
    while (marks && table.nextRow(innerRow)) {
      killed.check()
      if (kind.shows(inner, table.isMarked)) {
        pair.showAlone(inner, innerRow, table.isMarked)
        return true
      }
    }
    free()
    false
  }

  private def free(): Unit = {
    ranges.foreach(search => if (search != null) search.clear())
    table.free()
    chunks.reset()
  }

  /** Frees all memory at the end of the task. Returns the number of groups that had an index. */
  def close(): Long = {
    chunks.stopInserts()
    free()
    numIndexed
  }
}

private object IndexedGroup {

  /** The first pages are small, because most groups are. */
  private final val PageSize = 1L << 14
}
