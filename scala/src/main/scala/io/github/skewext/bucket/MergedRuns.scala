package io.github.skewext.bucket

import io.github.skewext.multijoin.KeyOrder

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.DataType

/** The rows of one file, and a check that they come in order. `row` is valid until `advance()`. */
private[bucket] final class SortedRun(
    rows: Iterator[InternalRow],
    order: KeyOrder,
    types: Array[DataType],
    notSorted: () => Exception) {

  /** Whether there is a current row. */
  var live: Boolean = false
  var row: UnsafeRow = _

  /** Of the row's key. */
  var prefix: Long = Long.MinValue

  /** The row before the current one, where its prefix does not say all. */
  private[this] val before = UnsafeRow.createFromByteArray(0, types.length)
  private[this] lazy val asUnsafe = UnsafeProjection.create(types)

  def advance(): Unit = {
    val prefixBefore = prefix
    val compares = live && !prefixSaysAll
    // The next row may be made in the same place.
    if (compares) before.copyFrom(row)
    live = rows.hasNext
    if (live) {
      row = rows.next() match {
        case unsafe: UnsafeRow => unsafe
        case other => asUnsafe(other)
      }
      prefix = order.prefix(0, row)
      if (prefix < prefixBefore ||
        (compares && prefix == prefixBefore && order.compare(0, before, 0, row) > 0)) {
        throw notSorted()
      }
    }
  }

  def isBefore(other: SortedRun): Boolean =
    if (!live) false
    else if (!other.live || prefix < other.prefix) true
    else if (prefix > other.prefix || prefixSaysAll) false
    else order.compare(0, row, 0, other.row) < 0

  private def prefixSaysAll: Boolean = order.prefixIsKey && prefix != KeyOrder.NullPrefix
}

/**
 * Merges sorted runs by a tree of losers: above the runs, as leaves, each node has the run that lost
 * the comparison there, and the winner of all is on top. When the winner goes on, only the nodes on
 * its way up are compared again.
 */
private[bucket] final class MergedRuns(runs: Array[SortedRun]) extends Iterator[InternalRow] {
  import MergedRuns.Nobody

  private[this] val n = runs.length

  /** The loser at each node; at 0, the winner. The children of node i are 2i and 2i + 1. */
  private[this] val tree = Array.fill(math.max(n, 1))(Nobody)
  private[this] var opened = false

  /** Whether the winner's row has been given away, and it is to go on. */
  private[this] var taken = false

  override def hasNext: Boolean = {
    if (!opened) {
      var i = 0
      while (i < n) {
        goOn(i)
        i += 1
      }
      opened = true
    } else if (taken) {
      taken = false
      goOn(tree(0))
    }
    n > 0 && runs(tree(0)).live
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    taken = true
    runs(tree(0)).row
  }

  private def goOn(run: Int): Unit = {
    runs(run).advance()
    var winner = run
    var node = (run + n) >> 1
    while (node > 0) {
      val other = tree(node)
      // As long as not all runs are in the tree, the first to come waits for the other.
      if (winner != Nobody && (other == Nobody || runs(other).isBefore(runs(winner)))) {
        tree(node) = winner
        winner = other
      }
      node >>= 1
    }
    tree(0) = winner
  }
}

private object MergedRuns {
  private val Nobody = -1
}
