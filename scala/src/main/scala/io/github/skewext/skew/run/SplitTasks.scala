package io.github.skewext.skew.run

import io.github.skewext.join.InputRole
import io.github.skewext.join.InputRole.Required
import io.github.skewext.join.exec.{MultiJoinIterator, MultiJoinTask}
import io.github.skewext.rows.{KeyFilter, NormalizedKeys, UnsafeInputs}
import io.github.skewext.skew.plan.{SplitTask, TaskShare}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * The work of the tasks of a join with split partitions. Each task joins with its own roles.
 *
 * @param tasks one for each partition of the join's RDD
 * @param rowShares divides the rows of a block among tasks, for each input
 */
private[skewext] case class SplitTasks(
    tasks: IndexedSeq[SplitTask],
    keys: NormalizedKeys,
    rowShares: Seq[RowShare],
    pieceRows: SQLMetric,
    residualRows: SQLMetric) {

  /** @param zipped the inputs, then the marks of [[MarkKeys]] if keys were marked */
  def join(
      task: MultiJoinTask,
      partition: Int,
      zipped: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] = {
    val (inputs, marks) = zipped.splitAt(rowShares.size)
    val part = tasks(partition)
    def partTask(rows: SQLMetric) =
      task.copy(roles = part.roles(task.roles), metrics = task.metrics.copy(ofKind = Some(rows)))
    part match {
      case SplitTask.Whole => new MultiJoinIterator(task, inputs).toScala
      case SplitTask.Piece(input, slice, nulls) =>
        val parts =
          inputs.updated(input, () => rowShares(input).filter(inputs(input)(), slice))
        val iterator =
          if (task.ordered.isDefined) {
            new MultiJoinIterator(partTask(pieceRows), parts)
          } else {
            new MultiJoinIterator(
              partTask(pieceRows),
              parts,
              slice = input,
              // The other inputs are complete, but the slice has only a part of their keys.
              sliceKeys = KeyFilter.ofBytes(slice.bytes),
              nullKeys = nullKeys(task.roles, input, nulls))
          }
        iterator.toScala
      case SplitTask.Residual(input, _, nulls) =>
        // The input is read last even if it is sorted, because its rows are not stored anyway.
        val unordered = partTask(residualRows).copy(ordered = None)
        // Pieces that merge sorted inputs return no rows of the other inputs with a null key.
        val ofNulls =
          if (task.ordered.isDefined) None else nullKeys(task.roles, input, nulls)
        def met = marks.headOption.flatMap(sent => MatchedKeys.ofAll(sent()))
        residual(unordered, input, inputs, met, ofNulls)
    }
  }

  /**
   * The rows with a null key that a task of a partition returns. None: those that the roles allow.
   */
  private def nullKeys(
      ofJoin: Seq[InputRole],
      input: Int,
      own: TaskShare): Option[(Int, UnsafeRow) => Boolean] =
    if (own.shares < 2) {
      None
    } else {
      val emits = ofJoin.indices.map(i => i != input && InputRole.emitsNullKeys(ofJoin, i))
      val ofSlice = InputRole.emitsNullKeys(ofJoin, input)
      val shareOf = rowShares.map(_.among(own.shares))
      Some((i, row) => if (i == input) ofSlice else emits(i) && shareOf(i)(row) == own.share)
    }

  /**
   * Joins the other inputs. Of the skewed input only the keys matter that the others have, each
   * once. So it is read last and hardly any of its rows are stored. If its keys are known from
   * marks, it is not read.
   */
  private def residual(
      task: MultiJoinTask,
      input: Int,
      inputs: Array[() => Iterator[InternalRow]],
      met: => Option[MatchedKeys],
      nullKeys: Option[(Int, UnsafeRow) => Boolean]): Iterator[InternalRow] = {
    val asUnsafe = new UnsafeInputs(task.output.inputTypes)
    val wanted = new KeyLookup(keys, TaskContext.get())
    val asked = SplitTasks.keysThatMatter(task.roles)
    // Evaluated after all other inputs have been read.
    lazy val known = met.flatMap(wanted.knownFrom)
    val wrapped = inputs.indices.map { i =>
      def rows = asUnsafe.all(i, inputs(i)())
      // Opens the input only when it is certain that it must be read.
      def unlessKnown = SplitTasks.lazily {
        if (known.isDefined) Iterator.empty else wanted.firstOfEach(i, rows)
      }
      def noted = rows.map { row => wanted.add(i, row.asInstanceOf[UnsafeRow]); row }
      () => if (i == input) unlessKnown else if (asked.contains(i)) noted else rows
    }
    val joined = new MultiJoinIterator(
      task,
      wrapped.toArray,
      drainedLast = input,
      known = () => known,
      giveUpRest = () => wanted.giveUp(),
      nullKeys = nullKeys.map(own => (i: Int, row: UnsafeRow) => i != input && own(i, row))).toScala
    // The Spark task may go on with other partitions, as in a coalesced RDD.
    joined ++ {
      wanted.close()
      Iterator.empty
    }
  }
}

private[skewext] object SplitTasks {

  /** The inputs whose keys can be in the result. */
  def keysThatMatter(roles: Seq[InputRole]): Seq[Int] = {
    // All keys of the result are in a required input, so its keys are enough.
    val required = roles.indices.find(roles(_) == Required)
    required.map(Seq(_)).getOrElse(roles.indices.filter(roles(_).isShown))
  }

  private def lazily[T](rows: => Iterator[T]): Iterator[T] = Iterator.empty ++ rows
}
