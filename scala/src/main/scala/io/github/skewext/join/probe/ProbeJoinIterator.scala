package io.github.skewext.join.probe

import io.github.skewext.rows.{BuildTable, InputReader, SpillableGroups, TaskRows, UnsafeInputs}
import io.github.skewext.shuffle.{ColumnBlockRows, ShuffledColumns}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * The output rows of one partition of a [[BuildProbeJoinExec]].
 *
 *  1. All rows of the build side go into memory, and a table of them is built.
 *  1. Rows of the probe side are looked up in it one after the other, in blocks of columns if they
 *     arrive in such blocks. Records that have a match get a mark, if the join must know.
 *  1. Rows of the build side follow that the output has by themselves: those of an outer or anti
 *     join without a mark, or all of an existence join.
 *
 * If the build side does not fit into memory, the rows of both sides are grouped by key with
 * Spark's external sorters ([[GroupedPairs]]).
 *
 * A row with a null in its key matches nothing, so it is returned (or dropped) when it is read.
 *
 * @param inputs not opened, because opening a shuffle starts to fetch it. If the probe side is one,
 *               it is opened before the build side is read, so that its first blocks are there by
 *               then.
 */
private[skewext] final class ProbeJoinIterator(
    task: ProbeJoinTask,
    inputs: Array[() => Iterator[InternalRow]],
    build: Int)
    extends TaskRows(task.metrics.outputRows) {

  import ProbeJoinIterator._

  private[this] val probe = 1 - build
  private[this] val kind = task.kind
  private[this] val keys = task.keys.own
  private[this] val condition = task.predicate
  private[this] val makesRows = task.output.makesRows
  private[this] val asUnsafe = new UnsafeInputs(task.output.inputTypes)
  private[this] val numFields = task.output.inputTypes.map(_.size).toArray
  private[this] val pair = new PairRows(task.output.assembler)

  // Without a condition, one row of the right side decides.
  private[this] val rows = new SpillableGroups(
    keys,
    numFields,
    Array(false, !kind.pairs && condition == null),
    task.grouping)
  private[this] var step = Build
  private[this] var table: BuildTable = _
  private[this] var ranges: ChainRanges = _
  private[this] var grouped: GroupedPairs = _

  private[this] val built = inputs(build)()
  private[this] var probed: Iterator[InternalRow] = _
  private[this] val buildRow = new UnsafeRow(numFields(build))
  private[this] val reader = new InputReader(rows, keys, keys, asUnsafe, killed, numInputs = 2)
  private[this] var numProbed = 0L
  private[this] var buildSize = 0L
  private[this] var isSorted = false

  private[this] val marks = kind.showsAny(build)

  // Whether later probe rows need not be tested with a record that has a mark. Spark evaluates the
  // condition no more for its row either, and that may fail.
  private[this] val dropsMarked = marks && !kind.pairs && condition != null

  // The probe side: the current row, and the next record of its chain. Its row is either in `block`
  // at `index`, or in `probeRow`.
  private[this] var block: ColumnBlockRows = _
  private[this] var index = 0
  private[this] var probeRow: UnsafeRow = _
  private[this] var pending = false
  private[this] var matched = false
  private[this] var isShown = false
  private[this] var record = 0L
  private[this] var chain = 0L
  private[this] var walked = 0
  private[this] var byRange = false
  private[this] var hashes = Array.emptyLongArray
  private[this] val found = new Array[Long](AtOnce)
  private[this] var foundFrom = 0
  private[this] var foundUntil = 0
  private[this] var blockHasNulls = false

  override def getRow: InternalRow = if (makesRows) pair.toUnsafeRow else pair

  override protected def advance(): Boolean = {
    var shown = false
    while (!shown && step != Done) {
      step match {
        case Build => shown = rows.keeping(buildSide())
        case Probe => shown = probeSide()
        case Unmatched => shown = unmatched()
        case Gather => shown = rows.keeping(gather())
        case Grouped => if (grouped.advance()) shown = true else step = Done
      }
    }
    shown
  }

  override protected def close(): Unit = rows.close()

  /** Reads the build side until a row with a null key is in the output, or to its end. */
  private def buildSide(): Boolean = {
    // Without rows to build, most joins return nothing, and the probe side is not fetched.
    def isNeeded = built.hasNext || reader.numRows(build) > 0 || kind.showsUnmatched(probe) ||
      task.areObserved(probe)
    if (probed == null && task.opensEarly(probe) && isNeeded) probed = inputs(probe)()
    if (insert(build, built)) return true
    val opens = probed == null && isNeeded
    buildSize = rows.bytesInMemory
    val found = rows.tableOf(build)
    rows.finishInput(build)
    // A join below begins to collect rows when this one has ended that.
    if (opens) probed = inputs(probe)()
    if (probed == null) {
      step = Done
    } else if (found.isDefined) {
      table = found.get
      task.condition.flatMap(_.range).foreach { range =>
        ranges = new ChainRanges(table, build, range.sides, pair, buildRow, context)
      }
      step = Probe
    } else {
      isSorted = true
      step = Gather
    }
    false
  }

  /** Inserts the rows of a side. Returns true at a row with a null key that is in the output. */
  private def insert(side: Int, input: Iterator[InternalRow]): Boolean = {
    var alone = reader.nextAlone(side, input)
    while (alone != null && !kind.showsUnmatched(side)) alone = reader.nextAlone(side, input)
    if (alone != null) pair.showAlone(side, alone, matched = false)
    alone != null
  }

  private def gather(): Boolean =
    insert(probe, probed) || {
      rows.finishInput(probe)
      val range = task.condition.flatMap(_.range)
      // As in Spark, each row of the left side is tested until its first match.
      val byLeft = !kind.pairs && condition != null && range.isEmpty
      val groups = rows.sortedResult(if (byLeft) 0 else -1)
      val indexed = range.map { range =>
        new IndexedGroup(groups, kind, condition, range, numFields, pair, context)
      }
      grouped = new GroupedPairs(groups, kind, condition, numFields, pair, killed, indexed)
      step = Grouped
      false
    }

  /** Looks up rows of the probe side until one of the output is found. */
  private def probeSide(): Boolean = {
    while (true) {
      while (record != 0) {
        if (testRecord()) return true
      }
      if (pending) {
        pending = false
        if (showProbeAlone()) return true
      }
      killed.check()
      if (!nextProbeRow()) {
        step = if (marks && !kind.once(build)) Unmatched else Done
        return false
      }
      openChain()
    }
    false
  }

  /** Tests the current probe row with a record. Returns whether the output has a row for them. */
  private def testRecord(): Boolean = {
    val current = record
    var isLast = false
    table.pointTo(buildRow, current)
    val shown = !isDecided(current) && isMatch && {
      matched = true
      if (kind.pairs) {
        if (marks) table.mark(current)
        if (condition == null) showPair()
        true
      } else if (marks) {
        // All records of a key get their marks together if there is no condition.
        val isNew = table.mark(current)
        if (!isNew && condition == null) isLast = true
        isNew && kind.once(build) && {
          isShown = false
          pair.showAlone(build, buildRow, matched = true)
          true
        }
      } else {
        isLast = true
        false
      }
    }
    if (dropsMarked) dropMarked(current)
    record = if (isLast) 0 else if (byRange) ranges.nextRecord() else next(current)
    shown
  }

  private def isDecided(current: Long): Boolean = dropsMarked && table.isMarked(current)

  private def dropMarked(current: Long): Unit =
    if (!byRange) table.dropMarked(current)
    else if (table.isMarked(current)) ranges.dropLast()

  private def next(current: Long): Long = {
    walked += 1
    if (walked == ChainRanges.LongChain && ranges != null) ranges.noteLong(chain)
    table.next(current)
  }

  /** Begins with the records for a probe row: those of its chain, or the candidates among them. */
  private def openChain(): Unit = {
    table.beginChain()
    if (ranges != null) {
      chain = record
      walked = 0
      byRange = false
      if (record != 0 && ranges.hasLong) {
        showProbe()
        byRange = ranges.open(record)
        if (byRange) record = ranges.nextRecord()
      }
    }
  }

  private def isMatch: Boolean = {
    val sameKey =
      if (block != null) keys.equal(build, buildRow, probe, block, index)
      else keys.equal(build, buildRow, probe, probeRow)
    sameKey && (condition == null || {
      killed.check()
      showPair()
      condition.eval(pair)
    })
  }

  private def showPair(): Unit = {
    showProbe()
    pair.show(build, buildRow)
  }

  /** Shows the probe row, once for all records: an output row then has only the others to copy. */
  private def showProbe(): Unit = if (!isShown) {
    isShown = true
    if (block != null) pair.show(probe, index) else pair.show(probe, probeRow)
  }

  private def showProbeAlone(): Boolean = {
    val shown = kind.shows(probe, matched)
    if (shown) {
      showProbe()
      pair.show(build, null: UnsafeRow)
      pair.exists = matched
    }
    shown
  }

  /** Moves to the next row of the probe side and finds its first record. */
  private def nextProbeRow(): Boolean = {
    matched = false
    isShown = false
    if (block != null && index + 1 < block.numRows) {
      index += 1
    } else if (!nextBlock()) {
      return nextSingleRow()
    }
    pending = true
    if (index >= foundUntil) {
      foundFrom = index
      foundUntil = math.min(index + AtOnce, block.numRows)
      table.first(hashes, foundFrom, foundUntil - foundFrom, found)
    }
    record = if (blockHasNulls && keys.hasNull(probe, block, index)) 0 else found(index - foundFrom)
    true
  }

  private def nextBlock(): Boolean = {
    if (block != null) block.takeAll()
    block = probed match {
      case columns: ShuffledColumns => columns.block
      case _ => null
    }
    if (block != null) {
      if (hashes.length < block.numRows) hashes = new Array[Long](2 * block.numRows)
      if (keys.hashAll(probe, block, hashes)) {
        numProbed += block.numRows
        blockHasNulls = keys.mayHaveNull(probe, block)
        pair.open(block)
        index = 0
        foundUntil = 0
      } else {
        block = null
      }
    }
    block != null
  }

  private def nextSingleRow(): Boolean = {
    val is = probed.hasNext
    if (is) {
      numProbed += 1
      probeRow = asUnsafe(probe, probed.next())
      pending = true
      record = if (keys.hasNull(probe, probeRow)) 0 else table.first(keys.hash(probe, probeRow))
    }
    is
  }

  /** The rows of the build side that the output has by themselves. */
  private def unmatched(): Boolean = {
    while (table.nextRow(buildRow)) {
      killed.check()
      if (kind.shows(build, table.isMarked)) {
        pair.showAlone(build, buildRow, table.isMarked)
        return true
      }
    }
    step = Done
    false
  }

  override protected def report(): Unit = {
    val metrics = task.metrics
    metrics.build.rows.add(reader.numRows(build))
    metrics.build.size.add(buildSize)
    metrics.probeRows.add(numProbed + reader.numRows(probe))
    metrics.build.sides(build).add(1)
    if (isSorted) metrics.sortedTasks.add(1)
    if (ranges != null) {
      metrics.indexedKeys.add(ranges.numIndexed)
      ranges.clear()
    }
    if (grouped != null) metrics.indexedKeys.add(grouped.close())
    metrics.spillSize.add(rows.spillSize)
    metrics.peakMemory.add(rows.peakMemory)
  }
}

private object ProbeJoinIterator {
  private final val Build = 0
  private final val Probe = 1
  private final val Unmatched = 2
  private final val Gather = 3
  private final val Grouped = 4
  private final val Done = 5

  /** Number of rows that are looked up together: about as many cache misses as a core overlaps. */
  private final val AtOnce = 64
}
