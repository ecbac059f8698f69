package io.github.skewext.execution.files

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Chooses the rows of batches that fulfil a condition. Not thread-safe: a task has its own.
 *
 * @param condition over the batch's columns
 * @param numRows where rows are counted before, and after
 */
private[skewext] final class BatchFilter(
    condition: Option[Expression],
    numRows: SQLMetric,
    numBatches: SQLMetric,
    numWanted: Option[SQLMetric])
    extends PredicateHelper
    with Serializable {

  private[this] val (presence, others) =
    condition.toSeq.flatMap(splitConjunctivePredicates).partition {
      case IsNotNull(_: BoundReference) => true
      case _ => false
    }

  /** The columns that must not be null: often none of them is in a whole batch. */
  private[this] val present =
    presence.collect { case IsNotNull(BoundReference(ordinal, _, _)) => ordinal }.toArray
  @transient private[this] lazy val predicate = Predicate.create(others.reduce(And))

  /** Notes the positions of wanted rows, in order, and says how many there are. */
  def choose(batch: ColumnarBatch, positions: Array[Int]): Int = {
    val size = batch.numRows
    numRows += size.toLong
    numBatches += 1
    var count = 0
    while (count < size) {
      positions(count) = count
      count += 1
    }
    var c = 0
    while (c < present.length) {
      val column = batch.column(present(c))
      if (column.hasNull) count = keep(positions, count)(!column.isNullAt(_))
      c += 1
    }
    if (others.nonEmpty) {
      count = keep(positions, count)(r => predicate.eval(batch.getRow(r)))
    }
    numWanted.foreach(_ += count.toLong)
    count
  }

  private def keep(positions: Array[Int], count: Int)(isWanted: Int => Boolean): Int = {
    var kept = 0
    var i = 0
    while (i < count) {
      if (isWanted(positions(i))) {
        positions(kept) = positions(i)
        kept += 1
      }
      i += 1
    }
    kept
  }
}
