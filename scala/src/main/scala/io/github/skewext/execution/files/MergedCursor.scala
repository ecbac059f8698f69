package io.github.skewext.execution.files

import io.github.skewext.execution.grouping.{KeyOrder, RowCursor}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * Merges sorted runs by a tree of losers: above the runs, as leaves, each node has the run that lost
 * the comparison there, and the winner of all is on top. When the winner goes on, only the nodes on
 * its way up are compared again. What is compared are the prefixes that the runs stand at, in one
 * array; rows only where two are equal and do not say all.
 *
 * It begins before the first row, as its runs do.
 */
private[skewext] final class MergedCursor(
    runs: Array[RowCursor],
    order: KeyOrder,
    numRows: SQLMetric)
    extends RowCursor {
  import MergedCursor._

  private[this] val n = runs.length

  /** Of the row that each run stands at; the highest one at its end. */
  private[this] val prefixes = new Array[Long](n)

  /** The loser at each node; at 0, the winner. The children of node i are 2i and 2i + 1. */
  private[this] val tree = Array.fill(math.max(n, 1))(Nobody)

  override def row: UnsafeRow = runs(tree(0)).row

  override def advance(): Unit = {
    if (tree(0) == Nobody) {
      var run = 0
      while (run < n) {
        goOn(run)
        run += 1
      }
    } else {
      goOn(tree(0))
    }
    live = n > 0 && runs(tree(0)).live
    if (live) {
      prefix = prefixes(tree(0))
      numRows += 1
    }
  }

  private def goOn(run: Int): Unit = {
    val source = runs(run)
    source.advance()
    prefixes(run) = if (source.live) source.prefix else Long.MaxValue
    var winner = run
    var node = (run + n) >> 1
    while (node > 0) {
      val other = tree(node)
      // As long as not all runs are in the tree, the first to come waits for the other.
      if (winner != Nobody && (other == Nobody || isBefore(other, winner))) {
        tree(node) = winner
        winner = other
      }
      node >>= 1
    }
    tree(0) = winner
  }

  private def isBefore(a: Int, b: Int): Boolean = {
    val prefixA = prefixes(a)
    val prefixB = prefixes(b)
    if (prefixA != prefixB) prefixA < prefixB
    else if (!runs(a).live) false
    else if (!runs(b).live) true
    else !order.saysAll(prefixA) && order.compare(0, runs(a).row, 0, runs(b).row) < 0
  }
}

private object MergedCursor {
  private val Nobody = -1
}
