package io.github.skewext.execution.split

import io.github.skewext.execution.grouping.UnsafeInputs
import io.github.skewext.execution.{KeyFilter, MultiJoinIterator, MultiJoinTask, NormalizedKeys}
import io.github.skewext.plan.InputRole
import io.github.skewext.plan.InputRole.Required

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * What the tasks of a join with split partitions do, each in the roles that are its own.
 *
 * @param tasks one for each partition of the join's RDD
 * @param rowShares how a block of each input is divided
 */
private[skewext] case class SplitTasks(
    tasks: IndexedSeq[SplitTask],
    keys: NormalizedKeys,
    rowShares: Seq[RowShare],
    pieceRows: SQLMetric,
    residualRows: SQLMetric) {

  /** @param zipped the inputs, and what [[MarkKeys]] has sent, where keys were marked */
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
              // The other inputs are there as a whole, and only a part of their keys are in the slice.
              sliceKeys = KeyFilter.ofBytes(slice.bytes),
              nullKeys = nullKeys(task.roles, input, nulls))
          }
        iterator.toScala
      case SplitTask.Residual(input, _, nulls) =>
        // The input is read last, whatever its order: its rows are not kept either way.
        val unordered = partTask(residualRows).copy(ordered = None)
        // Pieces that merge sorted inputs give none of the others' null keys.
        val ofNulls =
          if (task.ordered.isDefined) None else nullKeys(task.roles, input, nulls)
        def met = marks.headOption.flatMap(sent => MatchedKeys.ofAll(sent()))
        residual(unordered, input, inputs, met, ofNulls)
    }
  }

  /** Which rows with a null key come out of a task of a partition; by default, what roles say. */
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
   * Of an input that is not shown only keys matter that the others have, and each only once: so it is
   * read last, and of its rows hardly any are kept. If its keys are known, it is not read at all.
   */
  private def residual(
      task: MultiJoinTask,
      input: Int,
      inputs: Array[() => Iterator[InternalRow]],
      met: => Option[MatchedKeys],
      nullKeys: Option[(Int, UnsafeRow) => Boolean]): Iterator[InternalRow] = {
    val asUnsafe = new UnsafeInputs(task.inputTypes)
    val wanted = new KeyLookup(keys, TaskContext.get())
    val asked = SplitTasks.keysThatMatter(task.roles)
    // When all others are drained.
    lazy val known = met.flatMap(wanted.knownFrom)
    val wrapped = inputs.indices.map { i =>
      def rows = inputs(i)().map(asUnsafe(i, _))
      // Not before it is known whether it is read.
      def unlessKnown = SplitTasks.lazily {
        if (known.isDefined) Iterator.empty else wanted.firstOfEach(i, rows)
      }
      def noted = rows.map { row => wanted.add(i, row); row }
      () => if (i == input) unlessKnown else if (asked.contains(i)) noted else rows
    }
    new MultiJoinIterator(
      task,
      wrapped.toArray,
      drainedLast = input,
      known = () => known,
      giveUpRest = () => wanted.giveUp(),
      nullKeys = nullKeys.map(own => (i: Int, row: UnsafeRow) => i != input && own(i, row))).toScala
  }
}

/** The zip function of the operator's RDD where partitions are split. */
private[skewext] case class SplitJoinTask(join: MultiJoinTask, tasks: SplitTasks)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] =
    tasks.join(join, partition, inputs)
}

private[skewext] object SplitTasks {

  /** The inputs whose keys can come out. */
  def keysThatMatter(roles: Seq[InputRole]): Seq[Int] = {
    // Where an input is required, no key comes out that it does not have.
    val required = roles.indices.find(roles(_) == Required)
    required.map(Seq(_)).getOrElse(roles.indices.filter(roles(_).isShown))
  }

  private def lazily[T](rows: => Iterator[T]): Iterator[T] = Iterator.empty ++ rows
}
