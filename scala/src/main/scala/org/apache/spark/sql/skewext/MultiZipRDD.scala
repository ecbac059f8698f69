package org.apache.spark.sql.skewext

import scala.reflect.ClassTag

import org.apache.spark.rdd.{DeterministicLevel, RDD, ZippedPartitionsBaseRDD, ZippedPartitionsPartition}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.{FilterExec, InputAdapter, ProjectExec, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.{Partition, SparkContext, TaskContext}

/**
 * `zipPartitions` for any number of RDDs, with the number of the partition. Spark's public method
 * stops at four. Lives here because the base class is `private[spark]`: it provides partitions,
 * preferred locations and the clearing of dependencies.
 *
 * @param areReads whether each input only reads a shuffle, without memory of its own.
 * @param zip receives unopened inputs that are such reads, because opening one starts to fetch it.
 *            Others are open, as with Spark's: what a Python worker's thread would open later, such as
 *            a scan or a sort, would be closed before that thread has ended.
 */
class MultiZipRDD[T: ClassTag](
    sc: SparkContext,
    inputs: Seq[RDD[InternalRow]],
    areReads: Seq[Boolean],
    zip: (Int, Array[() => Iterator[InternalRow]]) => Iterator[T])
    extends ZippedPartitionsBaseRDD[T](sc, inputs) {

  /** The order of the output rows depends on the memory that is available for them. */
  override protected def getOutputDeterministicLevel: DeterministicLevel.Value =
    super.getOutputDeterministicLevel match {
      case DeterministicLevel.DETERMINATE => DeterministicLevel.UNORDERED
      case other => other
    }

  override def compute(split: Partition, context: TaskContext): Iterator[T] = {
    val partitions = split.asInstanceOf[ZippedPartitionsPartition].partitions
    // Uses `rdds`, which clearDependencies() drops, and not the constructor's `inputs`: a
    // checkpointed RDD must not keep its parents.
    zip(
      split.index,
      rdds
        .zip(partitions)
        .zip(areReads)
        .map { case ((rdd, partition), isRead) =>
          def open() = rdd.iterator(partition, context).asInstanceOf[Iterator[InternalRow]]
          if (isRead) { () =>
            open()
          } else {
            val rows = open()
            () => rows
          }
        }
        .toArray)
  }
}

object MultiZipRDD {

  /** Whether a plan only reads a shuffle. Its projections and filters need no memory. */
  def isRead(plan: SparkPlan): Boolean = plan match {
    case _: ShuffleExchangeLike | _: ShuffleQueryStageExec | _: AQEShuffleReadExec => true
    case ReusedExchangeExec(_, _: ShuffleExchangeLike) => true
    case _: ProjectExec | _: FilterExec | _: WholeStageCodegenExec | _: InputAdapter =>
      isRead(plan.children.head)
    case _ => false
  }

  /** Whether an RDD may have other rows when it is recomputed after a failure. */
  def isIndeterminate(rdd: RDD[_]): Boolean =
    rdd.outputDeterministicLevel == DeterministicLevel.INDETERMINATE
}
