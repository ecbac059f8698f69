package io.github.skewext.join.probe

import scala.collection.mutable

import io.github.skewext.join.range.{RangeEnds, RangeIndex, RangeKeys}
import io.github.skewext.rows.{BuildTable, KillCheck}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.TaskInternals

/**
 * Searches long chains of a [[BuildTable]] by the range in the condition of the join. A chain has the
 * rows of a key. If the key has many rows on both sides, a test of all pairs takes long.
 *
 * The second probe of a long chain sorts the intervals of its rows. A chain that is probed once, or
 * whose index has no memory, is read from its beginning to its end.
 *
 * @param table the table, whose rows stay in place.
 * @param ends the intervals of both sides, over [[PairRows]].
 */
private[probe] final class ChainRanges(
    table: BuildTable,
    build: Int,
    ends: Seq[RangeEnds],
    pair: PairRows,
    buildRow: UnsafeRow,
    context: TaskContext) {
  import ChainRanges._

  private[this] val ofBuild = new RangeKeys(ends(build))
  private[this] val ofProbe = new RangeKeys(ends(1 - build))
  private[this] val memory = new TaskInternals.HeapMemory(context)
  private[this] val killed = new KillCheck(context)

  // The index is sorted by lower ends. Intervals without one are sorted by their upper ends, in the
  // reverse order of all values.
  private[this] val isReverse = ends(build).isWithoutLower
  private[this] val isOneSided = ends.exists(_.isWithoutLower)

  /** The index of each long chain by its first record; null if there is no memory for it. */
  private[this] val indexes = mutable.LongMap.empty[Chain]

  // The candidates of a probe row.
  private[this] var chain: Chain = _
  private[this] var next = 0
  private[this] var until = 0
  private[this] var least = 0L

  /** The number of chains that have an index. */
  var numIndexed = 0L

  /** Whether there is a long chain. */
  def hasLong: Boolean = indexes.nonEmpty

  /** Notes that a chain is long. */
  def noteLong(first: Long): Unit = if (!indexes.contains(first)) indexes(first) = NotIndexed

  /** Makes the index of a chain. Returns false if there is no memory for it. */
  def index(first: Long): Boolean = {
    val made = indexed(first)
    indexes(first) = made
    made != null
  }

  /**
   * Opens the candidates in a chain for the probe row in `pair`. Returns false if the whole chain must
   * be read.
   */
  def open(first: Long): Boolean = {
    chain = indexes.getOrNull(first)
    if (chain eq NotIndexed) {
      index(first)
      chain = indexes(first)
    }
    if (chain != null) {
      // A lower end is compared with upper ends.
      ofProbe.loPrefix = chain.hiPrefix
      ofProbe.hiPrefix = chain.loPrefix
      next = 0
      if (ofProbe.read(pair)) {
        until = chain.index.until(if (isReverse) ~ofProbe.lo else ofProbe.hi)
        least = if (isReverse) ~ofProbe.hi else ofProbe.lo
        // Not those that were dropped. The upper ends of all others are above all values.
        if (isOneSided) least = math.max(least, Long.MinValue + 1)
      } else {
        until = 0
      }
    }
    chain != null && !(isOneSided && until > chain.records.length / MostFound)
  }

  /** The next candidate, or 0. */
  def nextRecord(): Long = {
    val found = chain.index.next(next, until, least)
    next = found + 1
    if (found < until) chain.records(found) else 0L
  }

  /** Drops the last candidate, which later probe rows need not be tested with. */
  def dropLast(): Unit = chain.index.drop(next - 1)

  private def indexed(first: Long): Chain = {
    var length = 0
    foreachRow(first)(_ => length += 1)
    if (length > MaxLength || !reserved(length)) {
      null
    } else {
      ofBuild.loPrefix = Array.emptyByteArray
      ofBuild.hiPrefix = Array.emptyByteArray
      var isFirst = true
      if (ends(build).hasBytes) {
        foreachRow(first) { _ =>
          ofBuild.shortenPrefixes(pair, isFirst)
          isFirst = false
        }
      }
      val made = sorted(first, length)
      memory.release(length.toLong * Temporary)
      numIndexed += 1
      made
    }
  }

  private def reserved(length: Int): Boolean = {
    val before = memory.getUsed
    val fits = memory.reserve(before + length.toLong * (Kept + Temporary))
    if (!fits) memory.release(memory.getUsed - before)
    fits
  }

  private def sorted(first: Long, length: Int): Chain = {
    val los = new Array[Long](length)
    val his = new Array[Long](length)
    val records = new Array[Long](length)
    var n = 0
    foreachRow(first) { record =>
      if (ofBuild.read(pair)) {
        los(n) = if (isReverse) ~ofBuild.hi else ofBuild.lo
        his(n) = if (isReverse) ~ofBuild.lo else ofBuild.hi
        records(n) = record
        n += 1
      }
    }
    val sorted = RangeIndex.sorted(los, his, n)
    new Chain(sorted.order.map(records(_)), sorted.index, ofBuild.loPrefix, ofBuild.hiPrefix)
  }

  private def foreachRow(first: Long)(f: Long => Unit): Unit = {
    var record = first
    while (record != 0) {
      killed.check()
      table.pointTo(buildRow, record)
      pair.show(build, buildRow)
      f(record)
      record = table.next(record)
    }
  }

  /** Frees the memory of all indexes. */
  def clear(): Unit = {
    indexes.clear()
    chain = null
    memory.release()
  }
}

private[probe] object ChainRanges {

  /** A shorter chain is not worth an index. */
  final val LongChain = 16

  /**
   * Rows of a chain are read in the order of memory, and candidates in that of their values. So a
   * comparison in one direction, whose candidates are known to be many, reads the chain.
   */
  private final val MostFound = 4

  private final val MaxLength = 100 * 1000 * 1000

  /** Bytes of an index for each row, and those besides while it is made. */
  private final val Kept = 26
  private final val Temporary = 64

  private class Chain(
      val records: Array[Long],
      val index: RangeIndex,
      val loPrefix: Array[Byte],
      val hiPrefix: Array[Byte])

  private val NotIndexed = new Chain(null, null, null, null)
}
