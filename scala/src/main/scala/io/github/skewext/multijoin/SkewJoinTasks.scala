package io.github.skewext.multijoin

import io.github.skewext.multijoin.InputRole.{Excluded, Required}
import io.github.skewext.skew.{RowShare, SkewTask}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * What the tasks of a join with split partitions do, each in the roles that are its own.
 *
 * @param tasks one for each partition of the join's RDD
 * @param normalizedKeys the keys of each input, bound to its rows; equal keys have equal bytes
 * @param rowShares how a block of each input is divided
 */
private[multijoin] case class SkewJoinTasks(
    tasks: IndexedSeq[SkewTask],
    normalizedKeys: Seq[Seq[Expression]],
    rowShares: Seq[RowShare],
    pieceRows: SQLMetric,
    residualRows: SQLMetric) {

  def join(
      task: MultiJoinTask,
      partition: Int,
      inputs: Array[Iterator[InternalRow]]): Iterator[InternalRow] = {
    val part = tasks(partition)
    val roles = part.roles(task.roles)
    val partTask = task.copy(roles = roles, skew = None)
    part match {
      case SkewTask.Whole => new MultiJoinIterator(task, inputs).toScala
      case SkewTask.Piece(input, slice) =>
        val filtered = rowShares(input).filter(inputs(input), slice)
        counted(new MultiJoinIterator(partTask, inputs.updated(input, filtered)).toScala, pieceRows)
      case SkewTask.Residual(input) =>
        counted(residual(partTask, input, inputs), residualRows)
    }
  }

  /**
   * Of the excluded input only keys matter that the others have, and each only once: so it is read
   * last, and of its rows hardly any are kept.
   */
  private def residual(
      task: MultiJoinTask,
      input: Int,
      inputs: Array[Iterator[InternalRow]]): Iterator[InternalRow] = {
    val asUnsafe = new UnsafeInputs(task.inputTypes)
    val wanted = new WantedKeys(normalizedKeys, TaskContext.get())
    // Where an input is required, no key comes out that it does not have.
    val required = inputs.indices.find(i => task.roles(i) == Required)
    val asked = required
      .map(Seq(_))
      .getOrElse(inputs.indices.filter(i => task.roles(i) != Excluded))
    val wrapped = inputs.indices.map { i =>
      val rows = inputs(i).map(asUnsafe(i, _))
      if (i == input) wanted.firstOfEach(i, rows)
      else if (asked.contains(i)) rows.map { row => wanted.add(i, row); row }
      else rows
    }
    new MultiJoinIterator(task, wrapped.toArray, drainedLast = input).toScala
  }

  private def counted(rows: Iterator[InternalRow], metric: SQLMetric): Iterator[InternalRow] = {
    var n = 0L
    TaskContext.get().addTaskCompletionListener[Unit](_ => metric.add(n))
    rows.map { row =>
      n += 1
      row
    }
  }
}
