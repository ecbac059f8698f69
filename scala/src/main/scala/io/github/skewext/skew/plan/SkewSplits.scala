package io.github.skewext.skew.plan

import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec, ShufflePartitionSpec}

/**
 * The split partitions of a join: the reads of its inputs and the work of its tasks.
 *
 * Tasks are derived from the reads when the join is executed, because Spark coalesces partitions
 * after the split and renumbers them.
 *
 * @param limit why the longest task is not shorter. None if smaller slices would make it shorter.
 */
case class SkewSplits(partitions: Seq[PartitionSplit], limit: Option[SkewReason.Detailed] = None) {

  def pieces: Int = partitions.map(_.slices.size).sum

  def residuals: Int = partitions.count(_.residual)

  def rereadBytes: Long = partitions.map(_.cost.rereadBytes).sum

  def markingTasks: Int = partitions.map(_.marking.size).sum

  def of(partition: Int): Option[PartitionSplit] = byPartition.get(partition)

  def splitByOutput: Int = partitions.count(_.byOutput)

  /** `2 partitions, 1 for its output, in 14 pieces, 2 residuals` */
  def describe: String = {
    def count(n: Int, what: String) = s"$n $what${if (n == 1) "" else "s"}"
    val residual = if (residuals == 0) "" else s", ${count(residuals, "residual")}"
    val output = splitByOutput match {
      case 0 => ""
      case n => s", $n for ${if (n == 1) "its" else "their"} output,"
    }
    s"${count(partitions.size, "partition")}$output in ${count(pieces, "piece")}$residual"
  }

  /** The end of a node's text in plans. */
  def suffix: String = limit.fold("")(given => s", ${SkewSplits.Limited}: ${given.text}")

  private lazy val byPartition = partitions.map(s => s.partition -> s).toMap

  /**
   * Returns the reads of each input: the ranges of partitions that it has read so far, without the
   * split partitions, and the reads of the tasks of these.
   *
   * @param bytes the size of each partition of each input.
   * @param splitLast whether split partitions come last: for a query that runs some tasks at first
   *                  and may need no others. Else they come first, because a long task must not
   *                  start last.
   */
  def reads(
      ranges: Seq[CoalescedPartitionSpec],
      bytes: Seq[IndexedSeq[Long]],
      splitLast: Boolean): Seq[Seq[ShufflePartitionSpec]] = {
    val inOrder = ranges.flatMap { range =>
      val (from, until) = (range.startReducerIndex, range.endReducerIndex)
      val split = (from until until).filter(byPartition.contains)
      val starts = from +: split.map(_ + 1)
      val ends = split :+ until
      starts.zip(ends).zipWithIndex.flatMap { case ((start, end), j) =>
        val whole = if (start < end || split.isEmpty) Seq(Left((start, end))) else Nil
        whole ++ split.lift(j).toSeq.flatMap { p =>
          byPartition(p).tasks.map {
            case SplitTask.Piece(input, slice, _) => Right((p, input, slice))
            case _ => Left((p, p + 1))
          }
        }
      }
    }
    def isSplit(task: Either[(Int, Int), _]) = task match {
      case Left((start, end)) => end - start == 1 && byPartition.contains(start)
      case _ => true
    }
    val (split, whole) = inOrder.partition(isSplit)
    val tasks = if (splitLast) whole ++ split else split ++ whole
    bytes.indices.map { i =>
      tasks.map {
        case Right((p, `i`, slice)) =>
          PartialReducerPartitionSpec(p, slice.startMap, slice.endMap, slice.bytesRead)
        case Right((p, _, _)) => CoalescedPartitionSpec(p, p + 1, bytes(i)(p))
        case Left((start, end)) =>
          CoalescedPartitionSpec(start, end, (start until end).map(bytes(i)).sum)
      }
    }
  }

  /**
   * Returns the work of each RDD partition's task, derived from its reads of every input. It fails
   * if these are not the reads of the split, because the answer would be wrong.
   */
  def tasks(reads: Seq[Seq[ShufflePartitionSpec]]): IndexedSeq[SplitTask] = {
    require(
      reads.map(_.size).distinct.size == 1,
      s"The inputs of a split join are read in ${reads.map(_.size).mkString(", ")} partitions.")
    var left = partitions.map(s => s.partition -> s.tasks).toMap
    val tasks = reads.head.indices.map { t =>
      val ofTask = reads.map(_(t))
      val task = for {
        read <- SkewSplits.readOf(ofTask)
        split = (read.start until read.end).filter(left.contains)
        next <- nextTask(read, split, left)
      } yield {
        left = left ++ split.map(p => p -> left(p).tail)
        next
      }
      task.getOrElse {
        throw new IllegalStateException(
          s"Task $t of a split join reads ${ofTask.mkString(", ")}, which is no part of $this")
      }
    }
    left.foreach { case (p, tasks) =>
      if (tasks.nonEmpty) {
        throw new IllegalStateException(
          s"A split join lacks ${tasks.size} tasks of partition $p: ${tasks.mkString(", ")}")
      }
    }
    tasks
  }

  /**
   * The work of a task by what it reads. None if the split has no such task.
   *
   * @param split the split partitions that it reads
   * @param left the tasks of each split partition that have not been found yet
   */
  private def nextTask(
      read: SkewSplits.Read,
      split: Seq[Int],
      left: Map[Int, Seq[SplitTask]]): Option[SplitTask] = {
    val isOne = read.end - read.start == 1
    // Only a task without a slice reads several partitions: Spark coalesces complete reads.
    val isPossible = split.forall(left(_).nonEmpty) &&
      (isOne || split.forall(byPartition(_).slices.isEmpty))
    if (split.isEmpty) Some(SplitTask.Whole).filter(_ => read.slice.isEmpty)
    else if (!isPossible) None
    else {
      (left(split.head).head, read.slice) match {
        case (piece @ SplitTask.Piece(i, slice, _), Some((j, spec)))
            if i == j && slice.startMap == spec.startMapIndex
              && slice.endMap == spec.endMapIndex =>
          Some(piece)
        case (SplitTask.Residual(i, p, nulls), None) =>
          Some(SplitTask.Residual(i, p.filter(_ => isOne), nulls))
        case _ => None
      }
    }
  }
}

object SkewSplits {

  /** The words before the limit in texts of a split. */
  val Limited = "not shorter"

  /** The partitions that a task reads of all inputs, and the slice that it reads of one input. */
  private case class Read(start: Int, end: Int, slice: Option[(Int, PartialReducerPartitionSpec)])

  /** None if the reads of the inputs do not belong together. */
  private def readOf(ofInputs: Seq[ShufflePartitionSpec]): Option[Read] = {
    val slice = ofInputs.zipWithIndex.collectFirst { case (spec: PartialReducerPartitionSpec, i) =>
      (i, spec)
    }
    val ranges = ofInputs.zipWithIndex.filterNot { case (_, i) => slice.exists(_._1 == i) }.map {
      case (CoalescedPartitionSpec(start, end, _), _) => Some((start, end))
      case _ => None
    }
    val own = slice.map { case (_, spec) => Some((spec.reducerIndex, spec.reducerIndex + 1)) }
    (own ++ ranges).toSeq.distinct match {
      case Seq(Some((start, end))) => Some(Read(start, end, slice))
      case _ => None
    }
  }
}
