package io.github.skewext.execution.grouping

/**
 * Groups rows of inputs that come sorted by their keys, as bucketed and sorted tables do: a plain
 * merge that keeps no rows, and gives the groups in the order of their keys.
 *
 * The prefixes of the keys that the inputs stand at are in one array, and the lowest is looked for in
 * it; keys themselves are compared only where prefixes are equal. For a few dozen inputs that is
 * less work than a tree of them would be.
 *
 * Keys that lack a needed input are passed over.
 *
 * Rows with a null in the key stand at their places in the order, one group each.
 */
private[skewext] final class KeySortedGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    single: Array[Boolean],
    groupRowsInMemory: Int,
    order: KeyOrder,
    inputs: Array[RowCursor],
    needed: Array[Boolean])
    extends SortMergeGroups(numFields, single, groupRowsInMemory) {

  /** Of the key that each input stands at; the highest one at its end. */
  private[this] val prefixes = new Array[Long](n)

  /** The inputs of the current group, and its key. */
  private[this] val members = new Array[Int](n)
  private[this] var numMembers = 0
  private[this] var groupPrefix = 0L
  private[this] var groupHasNull = false

  private[this] val numNeeded = needed.count(identity)

  sources = inputs
  inputs.indices.foreach(notePrefix)

  override def keyHasNull: Boolean = groupHasNull

  override def peakMemory: Long = 0L

  override protected[this] def openGroup(): Boolean = {
    findLowest()
    if (numNeeded > 0) {
      if (anyNeededEnded) return false
      // A key that cannot come out is passed over.
      while (numMembers > 0 && !hasNeeded) {
        passMembers()
        if (anyNeededEnded) return false
        findLowest()
      }
    }
    if (numMembers == 0) return false
    val reference = members(0)
    groupHasNull = order.mayHaveNull(groupPrefix) && keys.hasNull(reference, sources(reference).row)
    // No null equals another one.
    if (groupHasNull) numMembers = 1
    var m = 0
    while (m < numMembers - 1) {
      take(members(m))
      m += 1
    }
    // The first member's row has the key, so it has to stay.
    val mayStand = !anyMore && !single(members(m)) && (m > 0 || prefixIsKey)
    if (mayStand) takeWhereItStands(members(m)) else take(members(m))
    true
  }

  /** The inputs that stand at the lowest key. */
  private def findLowest(): Unit = {
    numMembers = 0
    groupPrefix = Long.MaxValue
    var i = 0
    while (i < n) {
      val prefix = prefixes(i)
      if (prefix < groupPrefix) {
        groupPrefix = prefix
        members(0) = i
        numMembers = 1
      } else if (prefix == groupPrefix && sources(i).live) {
        val c = if (numMembers == 0) 0 else compareToLowest(i)
        if (c < 0) numMembers = 0
        if (c <= 0) {
          members(numMembers) = i
          numMembers += 1
        }
      }
      i += 1
    }
  }

  /** Whether an input without which no key comes out has no more rows. */
  private def anyNeededEnded: Boolean = {
    var i = 0
    while (i < n && (!needed(i) || sources(i).live)) i += 1
    i < n
  }

  private def hasNeeded: Boolean = {
    var found = 0
    var m = 0
    while (m < numMembers) {
      if (needed(members(m))) found += 1
      m += 1
    }
    found == numNeeded
  }

  /**
   * Goes on by one row of each input at the lowest key. What follows may have the same key, and the
   * inputs that lack it now still will.
   */
  private def passMembers(): Unit = {
    var m = 0
    while (m < numMembers) {
      sources(members(m)).advance()
      notePrefix(members(m))
      m += 1
    }
  }

  private def compareToLowest(input: Int): Int =
    if (prefixIsKey) 0
    else order.compare(input, sources(input).row, members(0), sources(members(0)).row)

  /** Whether all keys of the group's prefix are the group's. */
  private def prefixIsKey: Boolean = order.saysAll(groupPrefix)

  override protected[this] def seek(input: Int): Boolean = {
    notePrefix(input)
    val source = sources(input)
    source.live && source.prefix == groupPrefix && !groupHasNull && (prefixIsKey ||
      order.compare(input, source.row, members(0), first(members(0))) == 0)
  }

  private def notePrefix(input: Int): Unit =
    prefixes(input) = if (sources(input).live) sources(input).prefix else Long.MaxValue
}
