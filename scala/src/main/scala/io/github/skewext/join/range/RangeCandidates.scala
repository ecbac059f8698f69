package io.github.skewext.join.range

import io.github.skewext.join.probe.PairRows
import io.github.skewext.rows.{KillCheck, UnsafeInputs}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** The streamed rows of a task and, for each, the rows of the broadcast side that may match it. */
private[range] final class RangeCandidates(
    task: RangeJoinTask,
    rows: Iterator[InternalRow],
    relation: RangeRelation,
    context: TaskContext) {

  private[this] val build = task.build
  private[this] val streamed = 1 - build
  private[this] val asUnsafe = new UnsafeInputs(task.output.inputTypes)
  private[this] val keys = new RangeKeys(task.ends)
  private[this] val index = relation.index
  private[this] val buildRow = new UnsafeRow(task.output.inputTypes(build).size)
  private[this] val killed = new KillCheck(context)

  // An upper end is compared with the lower ends of the index.
  keys.hiPrefix = relation.loPrefix
  keys.loPrefix = relation.hiPrefix

  val pair: PairRows = task.newPair

  /** The streamed row. */
  var row: UnsafeRow = _

  /** The number of the candidate. */
  var number = 0
  private[this] var next = 0
  private[this] var until = 0
  private[this] var numRows = 0L
  private[this] var numTests = 0L

  /** Moves to the next streamed row. Returns false after the last. */
  def nextRow(): Boolean = {
    killed.check()
    val is = rows.hasNext
    if (is) {
      row = asUnsafe(streamed, rows.next())
      numRows += 1
      pair.show(streamed, row)
      findCandidates()
    }
    is
  }

  private def findCandidates(): Unit = {
    val group =
      if (relation.numIntervals > 0 && keys.read(pair)) relation.groupOf(keys.hash) else -1
    if (group >= 0) {
      next = relation.firstOf(group)
      until = index.until(keys.hi, next, relation.endOf(group))
    } else {
      next = 0
      until = 0
    }
  }

  /** Moves to the next candidate of the row. Returns false after the last. */
  def nextCandidate(): Boolean = {
    number = index.next(next, until, keys.lo)
    next = number + 1
    number < until
  }

  /** Shows the candidate in the pair, for a test. */
  def show(): Unit = {
    killed.check()
    numTests += 1
    relation.pointTo(buildRow, number)
    pair.show(build, buildRow)
  }

  /** The row has no more candidates. */
  def skip(): Unit = until = 0

  def report(): Unit = {
    task.streamedRows.add(numRows)
    task.tests.add(numTests)
    numRows = 0
    numTests = 0
  }
}
