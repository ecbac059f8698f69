package org.apache.spark.sql.skewext

import org.apache.spark.rdd.{RDD, ZippedPartitionsBaseRDD, ZippedPartitionsPartition}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.{Partition, SparkContext, TaskContext}

/**
 * `zipPartitions` for any number of RDDs, with the number of the partition; Spark's public one stops
 * at four. Lives here because the base class, which gives partitions, preferred locations and the
 * clearing of dependencies, is `private[spark]`.
 */
class MultiZipRDD(
    sc: SparkContext,
    inputs: Seq[RDD[InternalRow]],
    zip: (Int, Array[Iterator[InternalRow]]) => Iterator[InternalRow])
    extends ZippedPartitionsBaseRDD[InternalRow](sc, inputs) {

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val partitions = split.asInstanceOf[ZippedPartitionsPartition].partitions
    // Through `rdds`, which clearDependencies() drops, and not through the constructor's `inputs`:
    // a checkpointed RDD must not keep its parents.
    zip(
      split.index,
      rdds
        .zip(partitions)
        .map { case (rdd, partition) =>
          rdd.iterator(partition, context).asInstanceOf[Iterator[InternalRow]]
        }
        .toArray)
  }
}
