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
    rereadBytes: Long = 0L) {

  /** The residual first: it may be the longest. */
  def tasks: Seq[SplitTask] =
    if (residual) {
      val n = slices.size + 1
      SplitTask.Residual(input, Some(partition), TaskShare(0, n)) +:
        slices.zipWithIndex.map { case (s, i) => SplitTask.Piece(input, s, TaskShare(i + 1, n)) }
    } else {
      slices.map(SplitTask.Piece(input, _, TaskShare.NoRows))
    }
}

/**
 * Which of the rows that each task of a partition reads are one task's own: those with a null key, of
 * inputs that are not sliced. They match nothing, so any of the tasks may give them.
 */
case class TaskShare(share: Int, shares: Int)

object TaskShare {

  /** Where there is no residual no such row comes out. */
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
