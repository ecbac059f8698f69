package org.apache.spark.sql.skewext

import scala.reflect.ClassTag

import org.apache.spark.rdd.{DeterministicLevel, RDD, ZippedPartitionsBaseRDD, ZippedPartitionsPartition}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.{Partition, SparkContext, TaskContext}

/**
 * `zipPartitions` for any number of RDDs, with the number of the partition. Spark's public method
 * stops at four. Lives here because the base class is `private[spark]`: it provides partitions,
 * preferred locations and the clearing of dependencies.
 *
 * @param zip receives unopened inputs, because opening a shuffle starts to fetch it
 */
class MultiZipRDD[T: ClassTag](
    sc: SparkContext,
    inputs: Seq[RDD[InternalRow]],
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
        .map { case (rdd, partition) =>
          () => rdd.iterator(partition, context).asInstanceOf[Iterator[InternalRow]]
        }
        .toArray)
  }
}

object MultiZipRDD {

  /** Whether an RDD may have other rows when it is recomputed after a failure. */
  def isIndeterminate(rdd: RDD[_]): Boolean =
    rdd.outputDeterministicLevel == DeterministicLevel.INDETERMINATE
}
