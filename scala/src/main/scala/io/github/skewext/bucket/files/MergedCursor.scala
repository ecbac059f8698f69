package io.github.skewext.bucket.files

import io.github.skewext.rows.{KeyOrder, RowCursor}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.RowIterator
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * Merges sorted runs with a tree of losers. The runs are the leaves, each node holds the run that
 * lost the comparison there, and the winner of all is on top. When the winner advances, only the
 * nodes on its path to the top are compared again. A comparison uses the runs' current prefixes,
 * which are in one array. It compares rows only if their prefixes are equal and do not determine
 * the key.
 *
 * Equal rows are returned in the order of their runs, as a stable sort of all rows returns them. It
 * starts before the first row, and so do the runs.
 */
private[skewext] final class MergedCursor(
    runs: Array[RowCursor],
    order: KeyOrder,
    numRows: SQLMetric)
    extends RowCursor {
  import MergedCursor._

  private[this] val n = runs.length

  /** The prefix of each run's current row; `Long.MaxValue` after its last row. */
  private[this] val prefixes = new Array[Long](n)

  /** The loser at each node, and the winner at 0. The children of node i are 2i and 2i + 1. */
  private[this] val tree = Array.fill(math.max(n, 1))(Nobody)

  override def row: UnsafeRow = runs(tree(0)).row

  /** The rows, from the first one on. */
  def rows: Iterator[InternalRow] = new RowIterator {
    override def getRow: InternalRow = row
    override def advanceNext(): Boolean = {
      advance()
      live
    }
  }.toScala

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
      // Until all runs are in the tree, the first run at a node waits for the second.
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
    else {
      val c = if (order.saysAll(prefixA)) 0 else order.compare(0, runs(a).row, 0, runs(b).row)
      c < 0 || (c == 0 && a < b)
    }
  }
}

private object MergedCursor {
  private val Nobody = -1
}
