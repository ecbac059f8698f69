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

  def rereadBytes: Long = partitions.map(_.rereadBytes).sum

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
   * @param place the place of split partitions among the others.
   */
  def reads(
      ranges: Seq[CoalescedPartitionSpec],
      bytes: Seq[IndexedSeq[Long]],
      place: SplitPlace): Seq[Seq[ShufflePartitionSpec]] = {
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
    val tasks = place match {
      case SplitPlace.First => split ++ whole
      case SplitPlace.Last => whole ++ split
    }
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
    def unexpected(t: Int) = throw new IllegalStateException(
      s"Task $t of a split join reads ${reads.map(_(t)).mkString(", ")}, which is no part of $this")
    require(
      reads.map(_.size).distinct.size == 1,
      s"The inputs of a split join are read in ${reads.map(_.size).mkString(", ")} partitions.")
    var left = partitions.map(s => s.partition -> s.tasks).toMap
    val tasks = reads.head.indices.map { t =>
      val sliced = reads.indices.collectFirst {
        case i if reads(i)(t).isInstanceOf[PartialReducerPartitionSpec] =>
          (i, reads(i)(t).asInstanceOf[PartialReducerPartitionSpec])
      }
      val whole = reads.indices.filterNot(i => sliced.exists(_._1 == i)).map { i =>
        reads(i)(t) match {
          case CoalescedPartitionSpec(start, end, _) => (start, end)
          case _ => unexpected(t)
        }
      }
      val (start, end) =
        sliced.map(s => (s._2.reducerIndex, s._2.reducerIndex + 1)).getOrElse(whole.head)
      if (whole.exists(_ != ((start, end)))) unexpected(t)
      val split = (start until end).filter(left.contains)
      if (split.isEmpty) {
        if (sliced.isDefined) unexpected(t)
        SplitTask.Whole
      } else {
        // Only a task without a slice reads several partitions: Spark coalesces complete reads.
        val next = split.map(p => left(p).headOption.getOrElse(unexpected(t)))
        if (split.size > 1 || end - start > 1) {
          if (split.exists(p => byPartition(p).slices.nonEmpty)) unexpected(t)
        }
        left = left ++ split.map(p => p -> left(p).tail)
        (next.head, sliced) match {
          case (piece @ SplitTask.Piece(i, slice, _), Some((j, spec)))
              if i == j && slice.startMap == spec.startMapIndex
                && slice.endMap == spec.endMapIndex =>
            piece
          case (SplitTask.Residual(i, p, nulls), None) =>
            SplitTask.Residual(i, p.filter(_ => end - start == 1), nulls)
          case _ => unexpected(t)
        }
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
}

object SkewSplits {

  /** The words before the limit in texts of a split. */
  val Limited = "not shorter"
}

/** The place of split partitions among the tasks of a join. */
sealed trait SplitPlace

object SplitPlace {

  /** First, because a long task must not start last. */
  case object First extends SplitPlace

  /** Last, for a query that runs some tasks at first and may need no others. */
  case object Last extends SplitPlace
}
