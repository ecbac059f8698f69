package io.github.skewext.join.probe

import io.github.skewext.rows.{KillCheck, SortMergeGroups}

import org.apache.spark.sql.catalyst.expressions.{BasePredicate, UnsafeRow}

/**
 * The output of a join whose rows have been grouped by key, because the build side did not fit into
 * memory.
 *
 * With a condition, the rows of a group have different matches. One after the other, each row of the
 * outer input is tested with all rows of the inner one. The inner rows have one bit each for a
 * match, and those that the output has by themselves follow at the end of the group. If the condition
 * has a range, [[IndexedGroup]] returns the rows of groups with many inner rows.
 *
 * @param condition null if there is none.
 * @param pair gets the rows of the output.
 * @param indexed none if the condition has no range.
 */
private[probe] final class GroupedPairs(
    groups: SortMergeGroups,
    kind: PairKind,
    condition: BasePredicate,
    numFields: Array[Int],
    pair: PairRows,
    killed: KillCheck,
    indexed: Option[IndexedGroup]) {

  import GroupedPairs._

  private[this] var step = NextGroup
  private[this] var outer = 0
  private[this] var inner = 1

  /** The side that alone has the key of the group, or -1. */
  private[this] var single = -1

  /** Whether rows of the group have different matches. */
  private[this] var byRow = false

  private[this] val outerRow = numFields.map(UnsafeRow.createFromByteArray(0, _))
  private[this] var outerMatched = false
  private[this] val innerMatched = new java.util.BitSet
  private[this] var innerRows: Iterator[UnsafeRow] = _
  private[this] var position = 0

  /** Moves to the next row of the output. Returns false after the last. */
  def advance(): Boolean = {
    while (true) {
      killed.check()
      step match {
        case NextGroup => if (!openGroup()) return false
        case Test =>
          step = Move
          if (if (byRow) testByRow() else testWhole()) return true
        case Move => if (move()) return true
        case BeginOuter => beginOuter()
        case Inner => if (nextInner()) return true
        case Indexed => if (indexed.get.advance()) return true else step = NextGroup
      }
    }
    false
  }

  private def openGroup(): Boolean = {
    val found = groups.nextGroup()
    if (found) {
      single = if (groups.rows(0) == null) 1 else if (groups.rows(1) == null) 0 else -1
      byRow = single < 0 && condition != null
      outer = groups.outer
      inner = 1 - outer
      if (byRow) innerMatched.clear()
      step = if (!byRow) Test else if (indexed.exists(_.open())) Indexed else BeginOuter
    }
    found
  }

  /** A combination of a group in which all rows have a match, or none has. */
  private def testWhole(): Boolean =
    if (single >= 0) {
      kind.showsUnmatched(single) && showAlone(single, groups.rows(single), matched = false)
    } else if (kind.pairs) {
      showPair()
    } else {
      kind.shows(0, matched = true) && showAlone(0, groups.rows(0), matched = true)
    }

  private def testByRow(): Boolean = {
    showPair()
    if (!isDecided && condition.eval(pair)) {
      val isFirst = !outerMatched
      outerMatched = true
      innerMatched.set(position)
      kind.pairs ||
      (isFirst && kind.once(outer) && showAlone(outer, groups.rows(outer), matched = true))
    } else {
      false
    }
  }

  /** Where one match of a row of the left side decides, it has one. */
  private def isDecided: Boolean = !kind.pairs && outer == 1 && innerMatched.get(position)

  private def move(): Boolean = {
    // Where one match decides, other rows need not be tested.
    val skips = byRow && !kind.pairs && outer == 0 && outerMatched
    val more = if (skips) groups.skipToOuter() else groups.nextCombination()
    if (!byRow) {
      step = if (more) Test else NextGroup
      false
    } else if (more && !groups.outerMoved) {
      position += 1
      step = Test
      false
    } else {
      step = if (more) BeginOuter else if (kind.showsAny(inner)) Inner else NextGroup
      if (step == Inner) {
        innerRows = groups.innerRows
        position = 0
      }
      keepsOuter && kind.shows(outer, outerMatched) &&
      showAlone(outer, outerRow(outer), outerMatched)
    }
  }

  /** Whether an outer row may be returned after all its combinations. */
  private def keepsOuter: Boolean = kind.alone(outer) || (kind.flagged && outer == 0)

  private def beginOuter(): Unit = {
    outerMatched = false
    position = 0
    // When all its combinations have been tested, the next row is there already.
    if (keepsOuter) outerRow(outer).copyFrom(groups.rows(outer))
    step = Test
  }

  private def nextInner(): Boolean =
    if (innerRows.hasNext) {
      val row = innerRows.next()
      val matched = innerMatched.get(position)
      position += 1
      kind.shows(inner, matched) && showAlone(inner, row, matched)
    } else {
      step = NextGroup
      false
    }

  /** Frees the memory of a group. Returns the number of groups that had an index. */
  def close(): Long = indexed.fold(0L)(_.close())

  private def showPair(): Boolean = {
    pair.show(0, groups.rows(0))
    pair.show(1, groups.rows(1))
    true
  }

  private def showAlone(side: Int, row: UnsafeRow, matched: Boolean): Boolean = {
    pair.showAlone(side, row, matched)
    true
  }
}

private object GroupedPairs {
  private final val NextGroup = 0
  private final val Test = 1
  private final val Move = 2
  private final val BeginOuter = 3
  private final val Inner = 4
  private final val Indexed = 5
}
