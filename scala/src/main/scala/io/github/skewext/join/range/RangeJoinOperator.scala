package io.github.skewext.join.range

import io.github.skewext.facts.EvaluatedInTurn
import io.github.skewext.join.MarkedRows
import io.github.skewext.join.probe.{PairCodegen, PairKind, PairRows}
import io.github.skewext.rows.{TaskOutput, TaskRows}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{And, BindReferences, EqualTo, Expression, UnsafeRow}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

/** A join whose condition has a range, with or without equal keys. */
private[skewext] trait RangeJoinOperator extends PairCodegen {

  /** The range in the condition, which it must have. */
  @transient lazy val range: RangeMatch = {
    val found = RangeMatch.of(condition.get, sides.map(_.outputSet)).get
    RangeMatch(found.left.copy(keys = leftKeys), found.right.copy(keys = rightKeys))
  }

  protected def pairMetrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numStreamedRows" -> SQLMetrics.createMetric(sparkContext, "number of streamed rows"),
    "numTests" -> SQLMetrics.createMetric(sparkContext, "number of pairs tested"))

  /** The intervals of a side, over its own rows. */
  protected def boundEnds(side: Int): RangeEnds =
    range.sides(side).map(BindReferences.bindReference(_, sides(side).output))

  /** Different keys may have one hash. */
  private def equalKeys: Seq[Expression] =
    leftKeys.zip(rightKeys).map { case (l, r) => overPairs(EqualTo(l, r)) }

  /** @param build the side with the index: 0 or 1. */
  protected def task(build: Int, makesRows: Boolean): RangeJoinTask = RangeJoinTask(
    output = taskOutput(makesRows),
    build = build,
    ends = range.sides(1 - build).map(overPairs),
    kind = kind,
    condition = (equalKeys ++ boundCondition).reduce(And),
    outputRows = longMetric("numOutputRows"),
    streamedRows = longMetric("numStreamedRows"),
    tests = longMetric("numTests"))
}

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
