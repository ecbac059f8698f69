package io.github.skewext.skew.split

import io.github.skewext.bucket.files.{BucketFiles, SlicedBucketsExec}
import io.github.skewext.skew.plan.MapBlocks

import org.apache.spark.sql.execution.{FileSourceScanExec, ShufflePartitionSpec, SparkPlan}

/**
 * The buckets of a table as a source that a join can read in slices. A file of the bucket, or a row
 * group of it, corresponds to the block of a map task in a shuffle.
 *
 * @param node the plan node whose rows of a bucket are computed from the rows of that bucket in the
 *             scan.
 */
private[skewext] case class BucketSource(node: SparkPlan, files: BucketFiles, sliceable: Boolean)
    extends FilesSource {

  override def bytes: IndexedSeq[Long] = files.bytes

  override def blocks(partition: Int): Seq[MapBlocks] =
    files.ranges(partition).zipWithIndex.map { case (range, i) => MapBlocks(i, i + 1, range.bytes) }

  override def reading(specs: Seq[ShufflePartitionSpec]): SparkPlan =
    SlicedBucketsExec(specs, files.known, node)

  override def below(node: SparkPlan): BucketSource = copy(node = node)
}

private[skewext] object BucketSource {

  /**
   * Returns None if the scan has files that belong to no bucket. Such a scan fails when it runs.
   */
  def of(scan: FileSourceScanExec, sliceable: Boolean): Option[BucketSource] =
    BucketFiles.of(scan).map(BucketSource(scan, _, sliceable))
}
