package org.apache.spark.sql.skewext

import scala.collection.mutable
import scala.reflect.ClassTag

import org.apache.spark.internal.config.MEMORY_OFFHEAP_ENABLED
import org.apache.spark.rdd.{DeterministicLevel, RDD, ZippedPartitionsBaseRDD, ZippedPartitionsPartition}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.{FilterExec, InputAdapter, ProjectExec, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.{Partition, ShuffleDependency, SparkContext, TaskContext}

/**
 * `zipPartitions` for any number of RDDs, with the number of the partition. Spark's public method
 * stops at four. Lives here because the base class is `private[spark]`: it provides partitions,
 * preferred locations and the clearing of dependencies.
 *
 * @param areReads whether each input only reads a shuffle, without memory of its own.
 * @param zip receives unopened inputs that read nothing but shuffles, because opening one starts to
 *            fetch it. Others are open, as with Spark's: a scan that a Python worker's thread would
 *            open later would be closed before that thread has ended. So would memory off the heap,
 *            and that thread would end the executor.
 */
class MultiZipRDD[T: ClassTag](
    sc: SparkContext,
    inputs: Seq[RDD[InternalRow]],
    areReads: Seq[Boolean],
    zip: (Int, Array[() => Iterator[InternalRow]]) => Iterator[T])
    extends ZippedPartitionsBaseRDD[T](sc, inputs) {

  private val areLate = MultiZipRDD.areLate(sc, inputs, areReads)

  /** The order of the output rows depends on the memory that is available for them. */
  override protected def getOutputDeterministicLevel: DeterministicLevel.Value =
    super.getOutputDeterministicLevel match {
      case DeterministicLevel.DETERMINATE => DeterministicLevel.UNORDERED
      case other => other
    }

  override def compute(split: Partition, context: TaskContext): Iterator[T] =
    TaskInternals.within(context)(zipped(split, context))

  private def zipped(split: Partition, context: TaskContext): Iterator[T] = {
    val partitions = split.asInstanceOf[ZippedPartitionsPartition].partitions
    // Uses `rdds`, which clearDependencies() drops, and not the constructor's `inputs`: a
    // checkpointed RDD must not keep its parents.
    zip(
      split.index,
      rdds
        .zip(partitions)
        .zip(areLate)
        .map { case ((rdd, partition), isLate) =>
          def open() = rdd.iterator(partition, context).asInstanceOf[Iterator[InternalRow]]
          if (isLate) { () =>
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

  private def areLate(
      sc: SparkContext,
      inputs: Seq[RDD[_]],
      areReads: Seq[Boolean]): Seq[Boolean] = {
    val usesOffHeap =
      sc.conf.get(MEMORY_OFFHEAP_ENABLED) || SQLConf.get.offHeapColumnVectorEnabled
    inputs.zip(areReads).map { case (input, isRead) =>
      isRead || (!usesOffHeap && readsShuffle(input))
    }
  }

  /** Whether it reads nothing but shuffles. An RDD may be reached by very many ways. */
  private def readsShuffle(rdd: RDD[_]): Boolean = {
    val known = mutable.HashSet(rdd.id)
    val waiting = mutable.ArrayBuffer[RDD[_]](rdd)
    var onlyShuffles = true
    while (onlyShuffles && waiting.nonEmpty) {
      val dependencies = waiting.remove(waiting.size - 1).dependencies
      onlyShuffles = dependencies.nonEmpty
      dependencies.foreach {
        case _: ShuffleDependency[_, _, _] =>
        case narrow => if (known.add(narrow.rdd.id)) waiting += narrow.rdd
      }
    }
    onlyShuffles
  }

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
