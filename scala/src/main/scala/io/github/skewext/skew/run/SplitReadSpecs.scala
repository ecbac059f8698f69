package io.github.skewext.skew.run

import io.github.skewext.bucket.files.SlicedBucketsExec
import io.github.skewext.join.exec.AlignPartitionsExec

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.skewext.SqlInternals

/**
 * Matches the nodes that define the reads of each task: Spark's for shuffles, and skewext's for
 * buckets and storage partitions.
 */
private[skewext] object SplitReadSpecs {

  def unapply(node: SparkPlan): Option[Seq[ShufflePartitionSpec]] = node match {
    case read: AQEShuffleReadExec => Some(read.partitionSpecs)
    case read: SlicedBucketsExec => Some(read.specs)
    case read: AlignPartitionsExec if read.specs.nonEmpty => Some(read.specs)
    case _ => None
  }

  /**
   * Returns an input of a split join with other reads. Rules may have inserted nodes since the
   * split.
   *
   * @param specs partial reads only if the input has a single source
   */
  def replacedIn(input: SparkPlan, specs: Seq[ShufflePartitionSpec]): SparkPlan =
    input.transformUp {
      case read: AQEShuffleReadExec => AQEShuffleReadExec(read.child, specs)
      case read: SlicedBucketsExec => read.copy(specs = specs)
      case read: AlignPartitionsExec if read.specs.nonEmpty => read.copy(specs = specs)
    }

  /**
   * Returns the reads of an input of a split join. It searches for them, because rules may have
   * inserted nodes since the split. Each task reads the same partitions of all sources, and of at
   * most one source a slice.
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
    // Tasks look up theirs by their number.
    specs.transpose.toIndexedSeq.map { ofTask =>
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

/** Reads an input of a split join. */
object SplitReads {

  /**
   * The rows of an input with other reads. In Spark 3.5, new nodes have the session of the thread,
   * which has none where an RDD of the query is used.
   */
  def execute(input: SparkPlan, specs: Seq[ShufflePartitionSpec]): RDD[InternalRow] =
    SqlInternals.withActive(input.session)(SplitReadSpecs.replacedIn(input, specs).execute())
}
