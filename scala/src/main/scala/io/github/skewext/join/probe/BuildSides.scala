package io.github.skewext.join.probe

import io.github.skewext.facts.MadeOf

import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}

/**
 * Chooses the side of a join that each task builds: the one with fewer bytes. Adaptive execution
 * knows the bytes of shuffles for each task. If the size of a side is unknown, the estimate of the
 * optimizer counts for all tasks.
 */
private[probe] object BuildSides {

  def of(left: SparkPlan, right: SparkPlan, tasks: Int): Array[Byte] = {
    val sizes = Seq(left, right).map(sizesOf(_, tasks))
    if (sizes.forall(_.isDefined)) {
      val Seq(ofLeft, ofRight) = sizes.flatten
      Array.tabulate(tasks)(i => smaller(ofLeft(i), ofRight(i)))
    } else {
      def total(side: SparkPlan, known: Option[IndexedSeq[Long]]): BigInt =
        known.map(s => BigInt(s.sum)).orElse(estimate(side)).getOrElse(BigInt(Long.MaxValue))
      Array.fill(tasks)(smaller(total(left, sizes(0)), total(right, sizes(1))))
    }
  }

  private def smaller[T](left: T, right: T)(implicit order: Ordering[T]): Byte =
    if (order.lt(left, right)) 0 else 1

  private def estimate(side: SparkPlan): Option[BigInt] =
    side.find(_.logicalLink.isDefined).flatMap(_.logicalLink).map(_.stats.sizeInBytes)

  /** The bytes that each task reads of the shuffles below a side; None if a source is unknown. */
  private def sizesOf(side: SparkPlan, tasks: Int): Option[IndexedSeq[Long]] = (side match {
    case stage: ShuffleQueryStageExec => stage.mapStats.map(_.bytesByPartitionId.toIndexedSeq)
    case AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs) =>
      stage.mapStats.map(s => specs.map(bytesOf(_, s.bytesByPartitionId)).toIndexedSeq)
    case MadeOf.Wrapped(child) => sizesOf(child, tasks)
    case MadeOf(parts) =>
      val found = parts.map(part => sizesOf(part.child, tasks))
      found.reduceOption { (a, b) =>
        for (x <- a; y <- b if x.size == y.size) yield x.indices.map(i => x(i) + y(i))
      }.flatten
    case _ => None
  }).filter(_.size == tasks)

  private def bytesOf(spec: ShufflePartitionSpec, bytes: Array[Long]): Long = spec match {
    case CoalescedPartitionSpec(start, end, _) => bytes.slice(start, end).sum
    case PartialReducerPartitionSpec(_, _, _, size) => size
    case _ => 0L
  }
}
