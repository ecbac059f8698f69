package io.github.skewext.bucket.files

import io.github.skewext.facts.KeepsStableRows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution.{PartialReducerPartitionSpec, ShufflePartitionSpec, SparkPlan, UnaryExecNode}

/**
 * Reads the buckets of a table with tasks that may share a bucket. A task reads whole buckets or a
 * slice of one. The nodes below run on the files of each slice.
 *
 * @param specs the read of each task, as for shuffles, with a bucket in place of a partition
 * @param ranges the file ranges of sliced buckets, from which slices and the reads of marking tasks
 *               are built
 */
private[skewext] case class SlicedBucketsExec(
    specs: Seq[ShufflePartitionSpec],
    ranges: Map[Int, Seq[FileRange]],
    child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = UnknownPartitioning(specs.size)

  /** A slice is read in the order of its file. */
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] =
    new SlicedFilesRDD(child.execute(), specs, ranges)

  override def simpleString(maxFields: Int): String = {
    val slices = specs.collect { case part: PartialReducerPartitionSpec => part.reducerIndex }
    val sliced = slices match {
      case Nil => ""
      case of => s", ${of.size} of them with slices of ${of.distinct.size}"
    }
    s"$nodeName ${child.outputPartitioning.numPartitions} buckets, ${specs.size} tasks$sliced"
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SlicedBucketsExec =
    copy(child = newChild)
}
