package io.github.skewext.join.exec

import io.github.skewext.join.InputRole
import io.github.skewext.join.InputRole.Excluded
import io.github.skewext.rows.{InputReader, InputRows, InputsInOrder, KeyFilter, KeyGroups, KeyOrder, KeySortedGroups, MatchedKeyFilter, RowCursor, SpillableGroups, TaskRows, UnsafeInputs}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeArrayData, UnsafeRow}

/**
 * The output rows of one partition of a [[MultiFullJoinExec]].
 *
 * Inputs that are sorted by the key are merged. Other inputs are first drained, one after the
 * other. A row with a null in its key matches nothing, so it is returned (or dropped) immediately
 * and takes no memory, regardless of the number of such rows. Then the other rows are returned key
 * by key.
 *
 * @param inputs not opened, because opening a shuffle starts to fetch it.
 * @param slice an input that is drained before all others, or -1; the result has no key that it
 *              lacks, so rows of other keys are not stored.
 * @param sliceKeys the filter for the keys of that input.
 * @param drainedLast an input that is drained after all others, or -1.
 * @param known the keys that this input has, if they are known without its rows; evaluated after
 *              all inputs have been drained.
 * @param nullKeys the rows with a null key to return, if not all that the roles allow.
 * @param giveUpRest frees memory that the inputs use and can do without, if there is none for rows.
 */
private[skewext] final class MultiJoinIterator(
    task: MultiJoinTask,
    inputs: Array[() => Iterator[InternalRow]],
    slice: Int = -1,
    sliceKeys: KeyFilter = null,
    drainedLast: Int = -1,
    known: () => Option[MatchedKeyFilter] = () => None,
    giveUpRest: () => Unit = () => (),
    nullKeys: Option[(Int, UnsafeRow) => Boolean] = None)
    extends TaskRows(task.metrics.outputRows) {

  private[this] val n = inputs.length
  private[this] val keys = task.keys.own
  private[this] val roles = task.roles.toArray
  private[this] val emitsNullKeys = Array.tabulate(n)(InputRole.emitsNullKeys(task.roles, _))
  private[this] val ownNullKeys = nullKeys.orNull
  private[this] val needed = roles.indices.filter(roles(_).isNeeded).toArray
  private[this] val excluded = roles.indices.filter(roles(_) == Excluded).toArray
  private[this] val makesRows = task.output.makesRows
  private[this] val asUnsafe = new UnsafeInputs(task.output.inputTypes)

  private[this] val combination = new InputRows(n, task.output.assembler)

  private[this] val present = new Array[Int](n)

  private[this] val numFields = task.output.inputTypes.map(_.size).toArray
  private[this] val single = roles.map(!_.isShown)
  private[this] val gathered =
    if (task.ordered.isDefined) null
    else new SpillableGroups(keys, numFields, single, task.grouping, giveUpRest)

  /** Null until the inputs have been drained. */
  private[this] var groups: KeyGroups = _
  private[this] var knownKeys: MatchedKeyFilter = _

  private[this] var numGroups = 0L
  private[this] var numNullKeys = 0L
  private[this] var current: InternalRow = _

  /** Whether the combinations of the current group are in the result. */
  private[this] var shown = false

  private[this] val reader =
    if (gathered == null) null else new InputReader(gathered, keys, keys, asUnsafe, killed, n)
  private[this] val draining =
    if (gathered == null) null
    else {
      val order = inputs.indices.toArray.sortBy {
        case `slice` => -1
        case `drainedLast` => 1
        case _ => 0
      }
      new InputsInOrder(reader, inputs, order, sliceKeys)
    }

  /** A merge needs the first row of each input. */
  private[this] val merging = if (gathered == null) inputs.map(_()) else null
  private[this] var sources: Array[RowCursor.Ordered] = _

  override def getRow: InternalRow = current

  override protected def advance(): Boolean = {
    killed.check()
    if (groups == null) {
      groups = task.ordered match {
        case Some(order) => orderedGroups(order.own)
        case None =>
          val drained = gathered.keeping {
            if (drain()) {
              null
            } else {
              knownKeys = known().orNull
              gathered.result()
            }
          }
          if (drained == null) return true
          drained
      }
    } else if (shown && groups.nextCombination()) {
      showGroup(groups.firstChanged)
      return true
    }
    while (groups.nextGroup()) {
      killed.check()
      if (!groups.keyHasNull) numGroups += 1
      if (comesOut()) {
        combination.first = firstPresent()
        showIndicator(groups.rows)
        if (groups.keyHasNull) numNullKeys += 1
        shown = true
        showGroup(changedFrom = 0)
        return true
      }
    }
    shown = false
    false
  }

  override protected def close(): Unit = if (gathered != null) gathered.close()

  private def orderedGroups(order: KeyOrder): KeySortedGroups = {
    sources = Array.tabulate(n)(i => new RowCursor.Ordered(i, merging(i), asUnsafe, order))
    new KeySortedGroups(
      keys,
      numFields,
      single,
      task.grouping.groupRowsInMemory,
      order,
      sources.toArray[RowCursor],
      roles.map(_.isNeeded))
  }

  /**
   * Reads on until a row with a null key is in the result (returns true), or until all inputs have
   * been drained (returns false).
   */
  private def drain(): Boolean = {
    var row = draining.nextAlone()
    while (row != null && !isShown(row)) row = draining.nextAlone()
    if (row != null) showAlone(draining.current, row)
    row != null
  }

  /** Whether a row with a null key is in the result. */
  private def isShown(row: UnsafeRow): Boolean =
    if (ownNullKeys == null) emitsNullKeys(draining.current)
    else ownNullKeys(draining.current, row)

  private def comesOut(): Boolean = {
    val rows = groups.rows
    var i = 0
    while (i < needed.length) {
      if (rows(needed(i)) == null && (knownKeys == null || needed(i) != drainedLast)) return false
      i += 1
    }
    i = 0
    while (i < excluded.length) {
      if (rows(excluded(i)) != null) return false
      i += 1
    }
    // Skip keys that occur only in inputs without rows in the result.
    i = 0
    while (i < n && (rows(i) == null || single(i))) i += 1
    i < n && (knownKeys == null || knownKeys.contains(i, rows(i)) == roles(drainedLast).isNeeded)
  }

  private def firstPresent(): Int = {
    val rows = groups.rows
    var i = 0
    while (rows(i) == null) i += 1
    i
  }

  /** The positions of the inputs that have the key. */
  private def showIndicator(rows: Array[UnsafeRow]): Unit =
    if (task.withIndicator) {
      var (i, count) = (0, 0)
      while (i < n) {
        if (rows(i) != null) {
          present(count) = i
          count += 1
        }
        i += 1
      }
      combination.indicator =
        UnsafeArrayData.fromPrimitiveArray(java.util.Arrays.copyOf(present, count))
    }

  private def showGroup(changedFrom: Int): Unit = {
    System.arraycopy(groups.rows, 0, combination.rows, 0, n)
    combination.changedFrom(changedFrom)
    showCombination()
  }

  private def showAlone(input: Int, row: UnsafeRow): Unit = {
    java.util.Arrays.fill(combination.rows.asInstanceOf[Array[AnyRef]], null)
    combination.rows(input) = row
    combination.changedFrom(0)
    combination.first = input
    showIndicator(combination.rows)
    numNullKeys += 1
    showCombination()
  }

  private def showCombination(): Unit =
    current = if (makesRows) combination.toUnsafeRow else combination

  override protected def report(): Unit = {
    val metrics = task.metrics
    metrics.ofKind.foreach(_.add(outputRows))
    for (i <- 0 until n) {
      if (gathered != null) metrics.inputRows(i).add(reader.numRows(i))
      else if (sources != null) metrics.inputRows(i).add(sources(i).numRows)
    }
    metrics.groups.add(numGroups)
    metrics.nullKeys.add(numNullKeys)
    if (gathered != null) {
      metrics.spillSize.add(gathered.spillSize)
      metrics.peakMemory.add(gathered.peakMemory)
    } else if (groups != null) {
      metrics.spillSize.add(groups.spillSize)
    }
  }
}
