package io.github.skewext.asof.exec

import io.github.skewext.rows.{HashedGroups, KeyOrder, KillCheck}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.util.collection.unsafe.sort.RadixSort

/** The rows of the spine key by key. Few rows of a key that has few versions are in any order. */
private[skewext] final class GroupedSpine(task: AsOfTask, groups: HashedGroups, killed: KillCheck)
    extends SpineRows {

  private[this] val n = task.output.inputTypes.size
  private[this] val spine = new TimeSorted(task, 0, groups)
  private[this] val versions = Array.tabulate(n - 1)(i => new GroupedVersions(task, i + 1, groups))
  private[this] var position = -1
  private[this] var mayMatch = false

  override val row = new UnsafeRow(task.output.inputTypes.head.size)

  override def advance(): Boolean = {
    position += 1
    while (position >= spine.size) {
      if (!groups.nextGroup()) return false
      killed.check()
      if (hasMatches) open() else spine.clear()
      position = 0
    }
    groups.pointTo(row, spine.place(position))
    mayMatch = !spine.isTimeless(position)
    true
  }

  /** Whether rows of the current key may be in the result. */
  private def hasMatches: Boolean = {
    var i = 0
    while (i < (if (task.inner) n else 1)) {
      if (groups.firstRow(i) == 0) return false
      i += 1
    }
    true
  }

  private def open(): Unit = {
    var free = spine.load(0)
    var areFew = true
    var i = 0
    while (i < n - 1) {
      free = versions(i).load(free)
      areFew &&= versions(i).size <= TimeSorted.FewVersions
      i += 1
    }
    if (!areFew) spine.sortIfFew()
  }

  override def version(input: Int): UnsafeRow =
    if (mayMatch) {
      val of = versions(input - 1)
      of.time = spine.time(position)
      of.find(row)
    } else {
      null
    }
}

/** The versions of the current key. */
private final class GroupedVersions(task: AsOfTask, input: Int, groups: HashedGroups)
    extends Versions(task, input) {

  private[this] val sorted = new TimeSorted(task, input, groups)
  private[this] val earlierRow, laterRow = new UnsafeRow(task.output.inputTypes(input).size)

  /** How many versions are before the row of the spine. */
  private[this] var passed = 0

  /** The time of the row of the spine. */
  var time: Long = _

  def size: Int = sorted.size

  /** Sorts the versions. Takes space from `at` on, and returns where it ends. */
  def load(at: Int): Int = {
    passed = 0
    val begin = sorted.load(at)
    sorted.dropTies()
    begin
  }

  override def seek(row: UnsafeRow): Unit = {
    val size = sorted.size
    while (passed < size && isBefore(passed)) passed += 1
    while (passed > 0 && !isBefore(passed - 1)) passed -= 1
    earlier = if (looksBack) candidate(passed - 1, earlierRow, row, 0) else null
    later =
      if (isNearest) candidate(if (isAt(passed)) passed + 1 else passed, laterRow, row, 1)
      else if (looksAhead) candidate(passed, laterRow, row, 0)
      else null
  }

  private def isBefore(position: Int): Boolean =
    sorted.time(position) < time || (skipsEqual && isAt(position))

  private def isAt(position: Int): Boolean =
    position < sorted.size && sorted.time(position) == time

  private def candidate(position: Int, version: UnsafeRow, row: UnsafeRow, bound: Int): UnsafeRow =
    if (position < 0 || position >= sorted.size) {
      null
    } else {
      groups.pointTo(version, sorted.place(position))
      if (isWithin(version, row, bound)) version else null
    }
}

/**
 * The rows that one input has with the current key, sorted by time, or few rows of the spine. They are
 * pairs of a place and a time in the space of the groups.
 */
private final class TimeSorted(task: AsOfTask, input: Int, groups: HashedGroups) {

  import TimeSorted._

  private[this] val space = groups.space
  private[this] val row, other = new UnsafeRow(task.output.inputTypes(input).size)
  private[this] lazy val ties = new TieOrder(task.table(input).ties)
  private[this] var begin = 0

  var size: Int = 0

  def clear(): Unit = size = 0

  def place(position: Int): Long = space.get(begin + 2 * position)

  def time(position: Int): Long = space.get(begin + 2 * position + 1)

  /** Whether a row of the spine has no time. */
  def isTimeless(position: Int): Boolean = time(position) == KeyOrder.NullPrefix && {
    groups.pointTo(other, place(position))
    task.keys.present.hasNull(input, other)
  }

  /** Takes space from `at` on, and returns where it ends. Versions without a time are left out. */
  def load(at: Int): Int = {
    begin = at
    size = 0
    var member = groups.firstRow(input)
    while (member != 0) {
      val place = groups.placeOf(member)
      groups.pointTo(row, place)
      val time = task.keys.timeOrder.prefix(input, row)
      if (time != KeyOrder.NullPrefix || input == 0 || !task.keys.present.hasNull(input, row)) {
        put(size, place, time)
        size += 1
      }
      member = groups.nextRow(input, member)
    }
    if (size > MaxInserted) {
      begin = RadixSort.sortKeyPrefixArray(space, at, size, 0, 7, false, true)
    } else if (input > 0) {
      insertionSort()
    }
    begin + 2 * size
  }

  /** Sorts the rows of the spine that `load` leaves in any order. */
  def sortIfFew(): Unit = if (size <= MaxInserted) insertionSort()

  /** Rows often arrive in the order of time, and groups return them in reverse. */
  private def insertionSort(): Unit = {
    var i = 0
    while (i < size / 2) {
      val p = place(i)
      val t = time(i)
      move(size - 1 - i, i)
      put(size - 1 - i, p, t)
      i += 1
    }
    i = 1
    while (i < size) {
      val t = time(i)
      if (time(i - 1) > t) {
        val p = place(i)
        var to = i
        while (to > 0 && time(to - 1) > t) {
          move(to - 1, to)
          to -= 1
        }
        put(to, p, t)
      }
      i += 1
    }
  }

  /** Of versions at one time, keeps the one that counts. */
  def dropTies(): Unit = {
    var kept = 0
    var i = 1
    while (i < size) {
      if (time(i) != time(kept)) {
        kept += 1
        if (kept != i) move(i, kept)
      } else {
        groups.pointTo(row, place(i))
        groups.pointTo(other, place(kept))
        if (ties.isFirst(row, other)) move(i, kept)
      }
      i += 1
    }
    if (size > 0) size = kept + 1
  }

  private def move(from: Int, to: Int): Unit = put(to, place(from), time(from))

  private def put(position: Int, place: Long, time: Long): Unit = {
    space.set(begin + 2 * position, place)
    space.set(begin + 2 * position + 1, time)
  }
}

private object TimeSorted {

  /** A row needs two longs, and a radix sort needs as many again. */
  val LongsPerRow = 4

  /** More rows than this are sorted by radix. */
  private final val MaxInserted = 48

  /** A search from any of so few versions takes less time than a sort of few rows of the spine. */
  final val FewVersions = 32
}
