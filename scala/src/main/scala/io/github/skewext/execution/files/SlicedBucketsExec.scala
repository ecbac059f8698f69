package io.github.skewext.execution.files

import io.github.skewext.plan.KeepsStableRows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution.{PartialReducerPartitionSpec, ShufflePartitionSpec, SparkPlan, UnaryExecNode}

/**
 * Rows that are made of the buckets of a table, where some buckets are read by several tasks: as a
 * whole by each, or in slices. What is below is computed for the files of each slice.
 *
 * @param specs what each task reads, said of buckets as Spark says it of shuffles
 * @param ranges of sliced buckets: what the slices are of, and those that marking tasks read
 */
private[skewext] case class SlicedBucketsExec(
    specs: Seq[ShufflePartitionSpec],
    ranges: Map[Int, Seq[FileRange]],
    child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows {

  override def nodeName: String = "SlicedBuckets"

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = UnknownPartitioning(specs.size)

  /** Slices of a file are read in its order. */
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
