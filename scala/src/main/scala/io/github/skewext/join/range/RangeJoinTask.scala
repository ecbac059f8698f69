package io.github.skewext.join.range

import java.util.BitSet

import io.github.skewext.join.exec.RowAssembler
import io.github.skewext.join.probe.{PairKind, PairRows}
import io.github.skewext.stable.EvaluatedInTurn

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeRow}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.DataType

/**
 * The work of the tasks of a [[BroadcastRangeJoinExec]]. It contains no plan, so that a serialized
 * task is small.
 *
 * @param inputTypes the column types of each side.
 * @param build the broadcast side: 0 or 1.
 * @param ends the interval of the streamed side, over `PairRows`.
 * @param condition the whole condition, over `PairRows`.
 * @param makesRows whether the output is UnsafeRows, or the `PairRows` from which they are built.
 */
private[skewext] case class RangeJoinTask(
    inputTypes: Seq[Seq[DataType]],
    build: Int,
    ends: RangeEnds,
    kind: PairKind,
    condition: Expression,
    output: Seq[Expression],
    makesRows: Boolean,
    outputRows: SQLMetric,
    streamedRows: SQLMetric,
    tests: SQLMetric) {

  def newPair: PairRows = new PairRows(new RowAssembler(inputTypes, output))

  /** The pairs that match, and rows of the streamed side by themselves. */
  def pairs(
      rows: Iterator[InternalRow],
      blocks: Array[InternalRow],
      context: TaskContext): Iterator[InternalRow] = {
    val candidates = new RangeCandidates(this, rows, new RangeRelation(blocks), context)
    new RangeJoinIterator(this, candidates, context).toScala
  }

  /** The set of rows of the broadcast side that have a match. */
  def marks(rows: Iterator[InternalRow], blocks: Array[InternalRow]): Array[Byte] = {
    val relation = new RangeRelation(blocks)
    val marked = relation.noRows
    val candidates = new RangeCandidates(this, rows, relation, TaskContext.get())
    val matches = EvaluatedInTurn.predicate(condition, Nil)
    while (candidates.nextRow()) {
      while (candidates.nextCandidate()) {
        if (!marked.get(candidates.number)) {
          candidates.show()
          if (matches.eval(candidates.pair)) marked.set(candidates.number)
        }
      }
    }
    // Each of these rows is streamed again for pairs, and then counted.
    if (!kind.pairs) candidates.report()
    marked.toByteArray
  }

  /** Rows of the broadcast side that the output has by themselves: one slice of them. */
  def ofBuildSide(
      blocks: Array[InternalRow],
      marked: Array[Byte],
      slice: Int,
      slices: Int): Iterator[InternalRow] = {
    val relation = new RangeRelation(blocks)
    val marks = BitSet.valueOf(marked)
    val pair = newPair
    val row = new UnsafeRow(inputTypes(build).size)
    Iterator
      .range(slice, relation.numRows, slices)
      .filter(number => kind.shows(build, marks.get(number)))
      .map { number =>
        relation.pointTo(row, number)
        pair.showAlone(build, row, marks.get(number))
        outputRows += 1
        if (makesRows) pair.toUnsafeRow else pair
      }
  }
}
