package io.github.skewext.skew

import io.github.skewext.bucket.SlicedBucketsExec

import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.{ShufflePartitionSpec, SparkPlan}

/** The nodes that say what each task reads of a source: Spark's for shuffles, ours for buckets. */
private[skew] object PartitionReads {

  def unapply(node: SparkPlan): Option[Seq[ShufflePartitionSpec]] = node match {
    case read: AQEShuffleReadExec => Some(read.partitionSpecs)
    case read: SlicedBucketsExec => Some(read.specs)
    case _ => None
  }

  def of(stage: ShuffleQueryStageExec, specs: Seq[ShufflePartitionSpec]): SparkPlan =
    AQEShuffleReadExec(stage, specs)

  /** The node with other reads. */
  def replaced(node: SparkPlan, specs: Seq[ShufflePartitionSpec]): SparkPlan = node match {
    case read: AQEShuffleReadExec => AQEShuffleReadExec(read.child, specs)
    case read: SlicedBucketsExec => read.copy(specs = specs)
  }
}
