package io.github.skewext.execution.split

import io.github.skewext.plan.InputRole
import io.github.skewext.plan.InputRole.{Excluded, Present, Required}

/**
 * The tasks of one partition: one for each slice of `input`, and one for the keys that it lacks.
 * Without slices the input is not shown and only its keys are asked for.
 *
 * @param longestTask the cost of the longest task, in bytes joined; of the longest two if one is
 *                    waited for by the other
 * @param work what all tasks together read, and what comes out of them
 * @param marking the slices in which tasks before the join find the keys that the input has; if
 *                there are none, the residual reads the input itself
 * @param byOutput whether it is split for what comes out, and not for what goes in
 * @param rereadBytes what all tasks together read more than one task would
 * @param dividesNullKeys whether all tasks give rows with a null key of the other inputs, each those
 *                        that what is in them says; if not, the residual gives them all
 */
case class PartitionSplit(
    partition: Int,
    input: Int,
    slices: Seq[Slice],
    residual: Boolean,
    longestTask: Double,
    work: Double,
    marking: Seq[Slice] = Nil,
    byOutput: Boolean = false,
    rereadBytes: Long = 0L,
    dividesNullKeys: Boolean = true) {

  /** The residual first: it may be the longest. */
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
 * Which of the rows that each task of a partition reads are one task's own: those with a null key, of
 * inputs that are not sliced. They match nothing, so any of the tasks may give them.
 */
case class TaskShare(share: Int, shares: Int)

object TaskShare {

  /** Where there is no residual, no such row comes out; or the residual gives them all. */
  val NoRows: TaskShare = TaskShare(0, 0)
}

/** What one task of a join does. */
sealed abstract class SplitTask extends Serializable {

  /** The roles that make the task give the keys that are its own. */
  def roles(ofJoin: Seq[InputRole]): Seq[InputRole]
}

object SplitTask {

  /** Joins all rows of its partitions. */
  case object Whole extends SplitTask {
    override def roles(ofJoin: Seq[InputRole]): Seq[InputRole] = ofJoin
  }

  /** Gives the rows of the join that have a row of this slice in them. */
  case class Piece(input: Int, slice: Slice, nullKeys: TaskShare) extends SplitTask {
    override def roles(ofJoin: Seq[InputRole]): Seq[InputRole] = ofJoin.updated(input, Required)
  }

  /**
   * Gives the rows of the join that show no row of the input: those of keys that it lacks, or all
   * where it only needs to be present.
   *
   * @param partition what it reads, if that is one partition
   */
  case class Residual(input: Int, partition: Option[Int], nullKeys: TaskShare) extends SplitTask {
    override def roles(ofJoin: Seq[InputRole]): Seq[InputRole] =
      if (ofJoin(input) == Present) ofJoin else ofJoin.updated(input, Excluded)
  }
}
