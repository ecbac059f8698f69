package io.github.skewext.join.range

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.LongArray
import org.apache.spark.unsafe.memory.MemoryBlock
import org.apache.spark.util.collection.unsafe.sort.RadixSort

/**
 * Finds the intervals that touch an interval, in logarithmic time for each of them. The intervals
 * are sorted by their lower ends, within each group if there are several. Above the upper ends is a
 * tree with the maximum of each 16 ends:
 * {{{
 * los:  lo(0) ... lo(n - 1)
 * ends: hi(0) ... hi(n - 1) | maximum of each 16 | maximum of each 256 | ... | at most 16 maxima
 * }}}
 * Both are arrays of longs or of bytes, so that a task reads those of a broadcast in place.
 */
private[skewext] final class RangeIndex(
    val size: Int,
    los: AnyRef,
    losAt: Long,
    ends: AnyRef,
    endsAt: Long) {
  import RangeIndex._

  private[this] val starts = levels(size)
  private[this] val top = starts.length - 2

  /** The number of intervals whose lower end is at most `most`: they are the first ones. */
  def until(most: Long): Int = until(most, 0, size)

  /** The end of these intervals in the group from `start` until `end`. */
  def until(most: Long, start: Int, end: Int): Int = {
    var from = start
    var to = end
    while (from < to) {
      val middle = (from + to) >>> 1
      if (Platform.getLong(los, losAt + (middle.toLong << 3)) <= most) from = middle + 1
      else to = middle
    }
    from
  }

  /** The first interval from `from` on whose upper end is at least `least`; `until` if none is. */
  def next(from: Int, until: Int, least: Long): Int = {
    var i = from
    while (i < until) {
      // The largest part of the tree that begins here, and has no such end.
      var level = if (i == 0) top else math.min(top, Integer.numberOfTrailingZeros(i) / FanBits)
      while (level >= 0 && end(level, i >> (level * FanBits)) >= least) level -= 1
      if (level < 0) return i
      i += 1 << (level * FanBits)
    }
    until
  }

  /** Drops an interval, so that `next` looks at few of those that are dropped. */
  def drop(i: Int): Unit = {
    setEnd(0, i, Long.MinValue)
    var level = 1
    while (level <= top) {
      val parent = i >> (level * FanBits)
      val first = parent << FanBits
      val last = math.min(first + (1 << FanBits), starts(level) - starts(level - 1)) - 1
      var most = Long.MinValue
      for (child <- first to last) most = math.max(most, end(level - 1, child))
      // The parent, and so all above it, is as before.
      if (most == end(level, parent)) return
      setEnd(level, parent, most)
      level += 1
    }
  }

  private def end(level: Int, i: Int): Long = Platform.getLong(ends, addressOf(level, i))

  private def setEnd(level: Int, i: Int, end: Long): Unit =
    Platform.putLong(ends, addressOf(level, i), end)

  private def addressOf(level: Int, i: Int): Long =
    endsAt + ((starts(level) + i).toLong << 3)
}

private[skewext] object RangeIndex {

  /** The number of children of a node is 2 to this power. */
  private final val FanBits = 4

  /** Most intervals of an index, whose arrays have at most 2 GiB. */
  final val MaxSize = 250 * 1000 * 1000

  /** The start of each level in the array of ends, and the end of the last one. */
  def levels(size: Int): Array[Int] = {
    val starts = Array.newBuilder[Int]
    var start = 0
    var n = size
    starts += start
    while (n > (1 << FanBits)) {
      start += n
      starts += start
      n = (n + (1 << FanBits) - 1) >> FanBits
    }
    starts += start + n
    starts.result()
  }

  /**
   * Intervals in the order of the index.
   *
   * @param order the position of each interval in the given order.
   * @param ends the upper ends and the tree above them.
   */
  case class Sorted(order: Array[Int], los: Array[Long], ends: Array[Long]) {
    def index: RangeIndex =
      new RangeIndex(los.length, los, Platform.LONG_ARRAY_OFFSET, ends, Platform.LONG_ARRAY_OFFSET)
  }

  /**
   * Sorts the first `size` intervals.
   *
   * @param groups the group of each interval; empty for one group.
   */
  def sorted(
      lo: Array[Long],
      hi: Array[Long],
      size: Int,
      groups: Array[Long] = Array.emptyLongArray): Sorted = {
    val byLo = orderOf(lo, size)
    val order =
      if (groups.isEmpty) byLo else orderOf(byLo.map(groups(_)), size).map(byLo(_))
    val los = new Array[Long](size)
    val starts = levels(size)
    val ends = new Array[Long](starts.last)
    var i = 0
    while (i < size) {
      los(i) = lo(order(i))
      ends(i) = hi(order(i))
      i += 1
    }
    fillTree(ends, starts)
    Sorted(order, los, ends)
  }

  private def orderOf(keys: Array[Long], size: Int): Array[Int] =
    if (size <= FewIntervals) insertionSort(keys, size) else radixSort(keys, size)

  /** For so few intervals, the counters of a radix sort take longer. */
  private final val FewIntervals = 64

  private def insertionSort(keys: Array[Long], size: Int): Array[Int] = {
    val order = Array.range(0, size)
    var i = 1
    while (i < size) {
      val key = keys(i)
      var j = i
      while (j > 0 && keys(order(j - 1)) > key) {
        order(j) = order(j - 1)
        j -= 1
      }
      order(j) = i
      i += 1
    }
    order
  }

  private def radixSort(keys: Array[Long], size: Int): Array[Int] = {
    // Pairs of a position and a key, and as much space again for the sort.
    val pairs = new Array[Long](4 * size)
    var i = 0
    while (i < size) {
      pairs(2 * i) = i
      pairs(2 * i + 1) = keys(i)
      i += 1
    }
    val all = new LongArray(MemoryBlock.fromLongArray(pairs))
    val from = RadixSort.sortKeyPrefixArray(all, 0, size, 0, 7, false, true)
    Array.tabulate(size)(i => pairs(from + 2 * i).toInt)
  }

  private def fillTree(ends: Array[Long], starts: Array[Int]): Unit =
    for (level <- 1 until starts.length - 1) {
      val (below, own) = (starts(level - 1), starts(level))
      java.util.Arrays.fill(ends, own, starts(level + 1), Long.MinValue)
      var i = below
      while (i < own) {
        val parent = own + ((i - below) >> FanBits)
        if (ends(i) > ends(parent)) ends(parent) = ends(i)
        i += 1
      }
    }
}
