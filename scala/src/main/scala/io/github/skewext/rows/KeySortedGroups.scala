package io.github.skewext.rows

/**
 * Groups the rows of inputs that are already sorted by key, such as bucketed and sorted tables. It
 * merges them without storing rows and returns groups in key order.
 *
 * An array holds the prefix of each input's current key, and a scan finds the lowest one. Keys are
 * compared only if their prefixes are equal. For a few dozen inputs the scan is cheaper than a
 * tree.
 *
 * Keys that a needed input lacks are skipped, because a group with several rows of two inputs is
 * copied. A row with a null in its key keeps its place in the order and forms a group of its own, unless
 * nulls are equal in the keys.
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

  /** The prefix of each input's current key; `Long.MaxValue` after its last row. */
  private[this] val prefixes = new Array[Long](n)

  /** The inputs of the current group, and the prefix of its key. */
  private[this] val members = new Array[Int](n)
  private[this] var numMembers = 0
  private[this] var groupPrefix = 0L
  private[this] var groupHasNull = false

  private[this] val numNeeded = needed.count(identity)

  sources = inputs
  inputs.indices.foreach(notePrefix)

  override def keyHasNull: Boolean = groupHasNull

  override protected[this] def openGroup(): Boolean = {
    findLowest()
    if (numNeeded > 0) {
      if (anyNeededEnded) return false
      // Skip keys that a needed input lacks.
      while (numMembers > 0 && !hasNeeded) {
        passMembers()
        if (anyNeededEnded) return false
        findLowest()
      }
    }
    if (numMembers == 0) return false
    val reference = members(0)
    groupHasNull = order.mayHaveNull(groupPrefix) && keys.hasNull(reference, sources(reference).row)
    // A null key equals no other key.
    if (groupHasNull) numMembers = 1
    var m = 0
    while (m < numMembers - 1) {
      take(members(m))
      m += 1
    }
    // Later rows are compared with the first member's row, which therefore must be a copy.
    val mayStand = !anyMore && !single(members(m)) && (m > 0 || prefixIsKey)
    if (mayStand) takeWhereItStands(members(m)) else take(members(m))
    true
  }

  /** Finds the inputs whose current key is the lowest. */
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

  /** Whether a needed input has no more rows, so that no further key can match. */
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
   * Advances each input at the lowest key by one row. The next row may have the same key. Inputs
   * that lack the key still lack it then.
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

  /** Whether all keys with the group's prefix are equal. */
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
