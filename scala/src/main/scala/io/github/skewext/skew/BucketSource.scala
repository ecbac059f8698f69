package io.github.skewext.skew

import io.github.skewext.execution.files.{BucketFiles, SlicedBucketsExec}
import io.github.skewext.execution.split.MapBlocks
import io.github.skewext.sketch.KeySketch

import org.apache.spark.sql.execution.{CoalescedPartitionSpec, FileSourceScanExec, ShufflePartitionSpec, SparkPlan}

/**
 * The buckets of a table, as far as a join can be split by them: what is a map task's block in a
 * shuffle, is a file of the bucket here, or a row group of it.
 *
 * @param node what makes rows of one bucket of the rows of this bucket
 */
private[skewext] case class BucketSource(node: SparkPlan, files: BucketFiles, sliceable: Boolean)
    extends PartitionSource {

  override def ranges: Seq[CoalescedPartitionSpec] =
    bytes.indices.map(p => CoalescedPartitionSpec(p, p + 1))

  override def bytes: IndexedSeq[Long] = files.bytes

  override def blocks(partition: Int): Seq[MapBlocks] =
    files.ranges(partition).zipWithIndex.map { case (range, i) => MapBlocks(i, i + 1, range.bytes) }

  /** A row group would be decoded by each task that shares it, which is most of the work. */
  override def canBeShared: Boolean = false

  override def dropCost: Double = SkewPlanner.FileStreamCost

  override def sketch: Option[KeySketch] = None

  override def rowBytes: Double = 0

  override def reading(specs: Seq[ShufflePartitionSpec]): SparkPlan =
    SlicedBucketsExec(specs, files.known, node)

  override def below(node: SparkPlan): BucketSource = copy(node = node)
}

private[skewext] object BucketSource {

  /** None if the scan has files of no bucket, at which it is going to fail. */
  def of(scan: FileSourceScanExec, sliceable: Boolean): Option[BucketSource] =
    BucketFiles.of(scan).map(BucketSource(scan, _, sliceable))
}
