package org.apache.spark.sql.skewext

import scala.reflect.ClassTag

import org.apache.spark.rdd.{DeterministicLevel, RDD, ZippedPartitionsBaseRDD, ZippedPartitionsPartition}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.{Partition, SparkContext, TaskContext}

/**
 * `zipPartitions` for any number of RDDs, with the number of the partition; Spark's public one stops
 * at four. Lives here because the base class, which gives partitions, preferred locations and the
 * clearing of dependencies, is `private[spark]`.
 *
 * @param zip gets the inputs unopened: a shuffle is fetched as soon as it is opened
 */
class MultiZipRDD[T: ClassTag](
    sc: SparkContext,
    inputs: Seq[RDD[InternalRow]],
    zip: (Int, Array[() => Iterator[InternalRow]]) => Iterator[T])
    extends ZippedPartitionsBaseRDD[T](sc, inputs) {

  /** The order in which rows are brought together depends on how much memory there is for them. */
  override protected def getOutputDeterministicLevel: DeterministicLevel.Value =
    super.getOutputDeterministicLevel match {
      case DeterministicLevel.DETERMINATE => DeterministicLevel.UNORDERED
      case other => other
    }

  override def compute(split: Partition, context: TaskContext): Iterator[T] = {
    val partitions = split.asInstanceOf[ZippedPartitionsPartition].partitions
    // Through `rdds`, which clearDependencies() drops, and not through the constructor's `inputs`:
    // a checkpointed RDD must not keep its parents.
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

  /** Whether an RDD that is computed again after a failure may have other rows. */
  def isIndeterminate(rdd: RDD[_]): Boolean =
    rdd.outputDeterministicLevel == DeterministicLevel.INDETERMINATE
}
