package io.github.skewext.join.range

import io.github.skewext.facts.EvaluatedInTurn
import io.github.skewext.rows.TaskRows

import org.apache.spark.sql.catalyst.InternalRow

/**
 * The output of a task of a [[BroadcastRangeJoinExec]]: the pairs of each streamed row that match, and
 * streamed rows by themselves, of an outer, semi, anti or existence join.
 */
private[range] final class RangeJoinIterator(task: RangeJoinTask, candidates: RangeCandidates)
    extends TaskRows(task.outputRows) {

  private[this] val kind = task.kind
  private[this] val streamed = 1 - task.build
  private[this] val makesRows = task.output.makesRows
  private[this] val pair = candidates.pair
  private[this] val condition = EvaluatedInTurn.predicate(task.condition, Nil)
  private[this] var hasRow = false
  private[this] var matched = false

  override def getRow: InternalRow = if (makesRows) pair.toUnsafeRow else pair

  override protected def advance(): Boolean = {
    while (true) {
      while (hasRow && candidates.nextCandidate()) {
        if (isMatch) return true
      }
      if (hasRow) {
        hasRow = false
        if (kind.shows(streamed, matched)) {
          pair.showAlone(streamed, candidates.row, matched)
          return true
        }
      }
      if (!candidates.nextRow()) return false
      hasRow = true
      matched = false
    }
    false
  }

  override protected def close(): Unit = ()

  override protected def report(): Unit = candidates.report()

  /** Tests the candidate. Returns whether the output has the pair. */
  private def isMatch: Boolean = {
    candidates.show()
    val is = condition.eval(pair)
    if (is) {
      matched = true
      // One match decides.
      if (!kind.pairs) candidates.skip()
    }
    is && kind.pairs
  }
}
