package io.github.skewext.execution.split

import io.github.skewext.execution.files.SlicedBucketsExec

import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}

/** The nodes that say what each task reads of a source: Spark's for shuffles, ours for buckets. */
private[skewext] object SplitReadSpecs {

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

  /**
   * An input of a split join with other reads; nodes may have come in between.
   *
   * @param specs parts only of an input that is made of one source
   */
  def replacedIn(input: SparkPlan, specs: Seq[ShufflePartitionSpec]): SparkPlan =
    input.transformUp { case node @ SplitReadSpecs(_) => replaced(node, specs) }

  /**
   * What an input of a split join reads; looked for again, as nodes may have come in between. Of
   * several sources each task reads the same partitions, of one perhaps a part.
   */
  def readsOf(input: SparkPlan): Seq[ShufflePartitionSpec] = {
    def all(node: SparkPlan): Seq[Seq[ShufflePartitionSpec]] = node match {
      case SplitReadSpecs(own) => Seq(own)
      case _ => node.children.flatMap(all)
    }
    def unexpected() = throw new IllegalStateException(
      s"The sources of an input of a split join are not read alike:\n$input")
    val specs = all(input)
    if (specs.map(_.size).distinct.size != 1) unexpected()
    specs.transpose.map { ofTask =>
      val parts = ofTask.collect { case part: PartialReducerPartitionSpec => part }
      val partitions = ofTask.map {
        case CoalescedPartitionSpec(start, end, _) => (start, end)
        case PartialReducerPartitionSpec(p, _, _, _) => (p, p + 1)
        case _ => unexpected()
      }
      if (partitions.distinct.size != 1 || parts.size > 1) unexpected()
      parts.headOption.getOrElse(ofTask.head)
    }
  }
}
