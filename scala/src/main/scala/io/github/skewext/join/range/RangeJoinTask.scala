package io.github.skewext.join.range

import io.github.skewext.facts.EvaluatedInTurn
import io.github.skewext.join.MarkedRows
import io.github.skewext.join.probe.{PairKind, PairRows}
import io.github.skewext.rows.TaskOutput

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeRow}
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * The work of the tasks of a [[RangeJoinOperator]]. It contains no plan, so that a serialized
 * task is small.
 *
 * @param build the side with the index: 0 or 1.
 * @param ends the interval of the streamed side, over `PairRows`.
 * @param condition the whole condition, over `PairRows`.
 */
private[skewext] case class RangeJoinTask(
    output: TaskOutput,
    build: Int,
    ends: RangeEnds,
    kind: PairKind,
    condition: Expression,
    outputRows: SQLMetric,
    streamedRows: SQLMetric,
    tests: SQLMetric) {

  def newPair: PairRows = new PairRows(output.assembler)

  /** The pairs that match, and rows of the streamed side by themselves. */
  def pairs(
      rows: Iterator[InternalRow],
      blocks: Array[InternalRow],
      context: TaskContext): Iterator[InternalRow] = {
    val candidates = new RangeCandidates(this, rows, new RangeRelation(blocks), context)
    new RangeJoinIterator(this, candidates).toScala
  }

  /** The rows of the broadcast side that have a match. */
  def marks(rows: Iterator[InternalRow], blocks: Array[InternalRow]): MarkedRows = {
    val relation = new RangeRelation(blocks)
    val marked = new MarkedRows
    val candidates = new RangeCandidates(this, rows, relation, TaskContext.get())
    val matches = EvaluatedInTurn.predicate(condition, Nil)
    while (candidates.nextRow()) {
      while (candidates.nextCandidate()) {
        if (!marked.contains(candidates.number)) {
          candidates.show()
          if (matches.eval(candidates.pair)) marked.add(candidates.number)
        }
      }
    }
    // Each of these rows is streamed again for pairs, and then counted.
    if (!kind.pairs) candidates.report()
    marked
  }

  /** Rows of the broadcast side that the output has by themselves: one slice of them. */
  def ofBuildSide(
      blocks: Array[InternalRow],
      marked: Array[Byte],
      slice: Int,
      slices: Int): Iterator[InternalRow] = {
    val relation = new RangeRelation(blocks)
    val marks = MarkedRows.fromBytes(marked)
    val pair = newPair
    val row = new UnsafeRow(output.inputTypes(build).size)
    Iterator
      .range(slice, relation.numRows, slices)
      .filter(number => kind.shows(build, marks.contains(number)))
      .map { number =>
        relation.pointTo(row, number)
        pair.showAlone(build, row, marks.contains(number))
        outputRows += 1
        if (output.makesRows) pair.toUnsafeRow else pair
      }
  }
}
