package io.github.skewext.skew.split

import io.github.skewext.bucket.files.{BucketFiles, SlicedBucketsExec}
import io.github.skewext.facts.{MadeOf, StableRows}
import io.github.skewext.skew.plan.{KeySketch, MapBlocks, SkewPlanner}
import io.github.skewext.skew.run.KeySketchExec

import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, ColumnarToRowExec, FileSourceScanExec, ShufflePartitionSpec, SparkPlan}
import org.apache.spark.sql.skewext.ShuffleInternals

/**
 * A source of rows for an input of a join that can be read in slices: a materialized shuffle, the
 * buckets of a table, or the partitions that a table has in its storage.
 */
private[skewext] trait PartitionSource {

  /** The node of the input's plan that reads the source. */
  def node: SparkPlan

  /** The partitions that each task reads. */
  def ranges: Seq[CoalescedPartitionSpec]

  /** Whether the input computed from a part of the source's rows is a part of the input. */
  def sliceable: Boolean

  /** The size of each partition. */
  def bytes: IndexedSeq[Long]

  /** The blocks of a partition. Each can be read separately. */
  def blocks(partition: Int): Seq[MapBlocks]

  /**
   * Whether tasks may divide a block by a hash of its rows, while each of them reads the whole
   * block. This requires that the rows are the same when their plan runs again. The check visits
   * the whole plan.
   */
  def canBeShared: Boolean

  /**
   * The cost of reading a byte that is then dropped, relative to a cost of 1 for a byte that is
   * joined.
   */
  def dropCost: Double = SkewPlanner.StreamCost

  /** The counts of its keys, if they were sampled. */
  def sketch: Option[KeySketch]

  /** Whether key sampling was skipped because it needs too many counters. */
  def keysNotCounted: Boolean = false

  /** Whether the number of partitions is that of a user's repartition. Spark may have chosen another. */
  def hasNumberOfUser: Boolean = false

  /** The size of all its rows in memory, or 0 if that is unknown. */
  def bytesInMemory: Double

  /** The average size of its rows in memory, or 0 if that is unknown. */
  def rowBytes: Double

  /** The node with other reads. */
  def reading(specs: Seq[ShufflePartitionSpec]): SparkPlan

  /** The same source as seen by a node that computes its rows from this source alone. */
  def below(node: SparkPlan): PartitionSource
}

/** A source that reads files: a partition has some of them, or parts of some. */
private[skewext] trait FilesSource extends PartitionSource {

  override def ranges: Seq[CoalescedPartitionSpec] =
    bytes.indices.map(p => CoalescedPartitionSpec(p, p + 1))

  /**
   * False, because every task that shares a row group would decode it, which is most of the work.
   */
  override def canBeShared: Boolean = false

  override def dropCost: Double = SkewPlanner.FileStreamCost

  override def sketch: Option[KeySketch] = None

  override def bytesInMemory: Double = 0

  override def rowBytes: Double = 0
}

/** @param node the stage, or the node that reads it. */
private[skewext] case class ShuffleSource(
    node: SparkPlan,
    stage: ShuffleQueryStageExec,
    ranges: Seq[CoalescedPartitionSpec],
    sliceable: Boolean)
    extends PartitionSource {

  /** All sizes are 0 if no map task ran. */
  override val bytes: IndexedSeq[Long] = stage.mapStats
    .map(_.bytesByPartitionId.toIndexedSeq)
    .getOrElse(IndexedSeq.fill(stage.shuffle.numPartitions)(0L))

  override def blocks(partition: Int): Seq[MapBlocks] = {
    val sizes = ShuffleInternals.blockSizes(stage.mapStats.get.shuffleId, partition)
    if (sizes.nonEmpty && sizes.forall(_ >= 0)) {
      sizes.zipWithIndex.map { case (size, m) => MapBlocks(m, m + 1, size) }
    } else {
      Seq(MapBlocks(0, stage.shuffle.numMappers, bytes(partition)))
    }
  }

  override lazy val canBeShared: Boolean = StableRows.areIn(stage.plan)

  private def counting: Option[KeySketchExec] = countingIn(stage.shuffle.child)

  private def countingIn(plan: SparkPlan): Option[KeySketchExec] = plan match {
    case counting: KeySketchExec => Some(counting)
    // The keys were sampled in batches, before their conversion to rows.
    case ColumnarToRowExec(child) => countingIn(child)
    case MadeOf.Wrapped(child) => countingIn(child)
    case _ => None
  }

  override def sketch: Option[KeySketch] = counting.flatMap(_.sketch)

  override def keysNotCounted: Boolean = counting.exists(_.isLeftOut)

  override def hasNumberOfUser: Boolean = stage.shuffle.logicalLink.exists {
    case repartition: RepartitionByExpression =>
      repartition.optNumPartitions.contains(stage.shuffle.numPartitions)
    case _ => false
  }

  override def bytesInMemory: Double = stage.shuffle.runtimeStatistics.sizeInBytes.toDouble

  override def rowBytes: Double = stage.shuffle.runtimeStatistics.rowCount
    .filter(_ > 0)
    .map(n => bytesInMemory / n.toDouble)
    .getOrElse(0.0)

  override def reading(specs: Seq[ShufflePartitionSpec]): SparkPlan =
    AQEShuffleReadExec(stage, specs)

  /** The source is unchanged: nodes above read the rows of the shuffle without further reads. */
  override def below(node: SparkPlan): PartitionSource = this
}

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
