package io.github.skewext.skew.plan

import io.github.skewext.join.InputRole
import io.github.skewext.join.InputRole.{Excluded, Present, Required}

/**
 * The tasks of one partition: a piece for each slice of `input`, and a residual for the keys that
 * it lacks. Without slices, the result has no rows of the input and only its keys matter.
 *
 * @param marking the slices whose keys are marked before the join; if empty, the residual reads the
 *                input.
 * @param byOutput whether the partition is split for its output, not for its input.
 * @param dividesNullKeys whether all tasks share the other inputs' rows with a null key by their
 *                        content; if not, the residual returns them all.
 */
case class PartitionSplit(
    partition: Int,
    input: Int,
    slices: Seq[Slice],
    residual: Boolean,
    cost: SplitCost,
    marking: Seq[Slice] = Nil,
    byOutput: Boolean = false,
    dividesNullKeys: Boolean = true) {

  /** The residual is first, because it may be the longest. */
  def tasks: Seq[SplitTask] =
    if (residual) {
      SplitTask.Residual(input, Some(partition), share(0)) +:
        slices.zipWithIndex.map { case (s, i) => SplitTask.Piece(input, s, share(i + 1)) }
    } else {
      slices.map(SplitTask.Piece(input, _, TaskShare.NoRows))
    }

  private def share(task: Int): TaskShare =
    if (dividesNullKeys) TaskShare(task, slices.size + 1) else TaskShare.NoRows
}

/**
 * @param longestTask the cost of the longest task, in joined bytes; if a task waits for another
 *                    one, the cost of both.
 * @param work the cost of all tasks: their reads and their output.
 * @param rereadBytes the bytes that all tasks read in excess of one task.
 */
case class SplitCost(longestTask: Double, work: Double, rereadBytes: Long = 0L)

/**
 * The share of one task in the rows that every task of a partition reads and that match nothing:
 * rows with a null key of inputs that are not sliced. Any of the tasks may return them.
 */
case class TaskShare(share: Int, shares: Int)

object TaskShare {

  /**
   * No share. Without a residual the result has no such row; otherwise the residual returns them
   * all.
   */
  val NoRows: TaskShare = TaskShare(0, 0)
}

/** The work of one task of a join. */
sealed abstract class SplitTask extends Serializable {

  /** The roles with which the task returns its own keys and no others. */
  def roles(ofJoin: Seq[InputRole]): Seq[InputRole]
}

object SplitTask {

  /** Joins all rows of its partitions. */
  case object Whole extends SplitTask {
    override def roles(ofJoin: Seq[InputRole]): Seq[InputRole] = ofJoin
  }

  /** Returns the rows of the join that contain a row of this slice. */
  case class Piece(input: Int, slice: Slice, nullKeys: TaskShare) extends SplitTask {
    override def roles(ofJoin: Seq[InputRole]): Seq[InputRole] = ofJoin.updated(input, Required)
  }

  /**
   * Returns the rows of the join without a row of the input: those of keys that it lacks, or all
   * rows if the input only has to be present.
   *
   * @param partition the partition that it reads, if it reads only one.
   */
  case class Residual(input: Int, partition: Option[Int], nullKeys: TaskShare) extends SplitTask {
    override def roles(ofJoin: Seq[InputRole]): Seq[InputRole] =
      if (ofJoin(input) == Present) ofJoin else ofJoin.updated(input, Excluded)
  }
}
