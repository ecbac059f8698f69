package io.github.skewext.skew

import io.github.skewext.execution.MadeOf
import io.github.skewext.execution.split.{KeySketchExec, MapBlocks, SplitReadSpecs}
import io.github.skewext.plan.StableRows
import io.github.skewext.sketch.KeySketch

import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, ColumnarToRowExec, ShufflePartitionSpec, SparkPlan}
import org.apache.spark.sql.skewext.ShuffleBlocks

/**
 * What rows of a join's input come from, and what can be read in parts: a shuffle that is done, or
 * the buckets of a table.
 */
private[skewext] trait PartitionSource {

  /** The node of the input's plan that stands for it. */
  def node: SparkPlan

  /** The partitions that each task reads. */
  def ranges: Seq[CoalescedPartitionSpec]

  /** Whether the input made of a part of its rows is a part of the input. */
  def sliceable: Boolean

  /** The size of each partition. */
  def bytes: IndexedSeq[Long]

  /** What it has of a partition, in blocks that can be read one by one. */
  def blocks(partition: Int): Seq[MapBlocks]

  /**
   * Whether tasks may divide a block by what is in its rows, each reading all of it: only if they are
   * the same rows when what it comes from runs again. Looks at all of the plan.
   */
  def canBeShared: Boolean

  /** What a byte costs that is read and dropped, where one that is joined costs 1. */
  def dropCost: Double = SkewPlanner.StreamCost

  /** What is known of how often its keys occur. */
  def sketch: Option[KeySketch]

  /** Whether it would be known, but for the number of counters that this takes. */
  def keysNotCounted: Boolean = false

  /** How large its rows are in memory, on average, if that is known. */
  def rowBytes: Double

  /** The node with other reads. */
  def reading(specs: Seq[ShufflePartitionSpec]): SparkPlan

  /** The same source, of which nothing but the rows of this node is made. */
  def below(node: SparkPlan): PartitionSource
}

/** @param node the stage, or the node that reads it */
private[skewext] case class ShuffleSource(
    node: SparkPlan,
    stage: ShuffleQueryStageExec,
    ranges: Seq[CoalescedPartitionSpec],
    sliceable: Boolean)
    extends PartitionSource {

  /** Of no rows where no map task ran. */
  override val bytes: IndexedSeq[Long] = stage.mapStats
    .map(_.bytesByPartitionId.toIndexedSeq)
    .getOrElse(IndexedSeq.fill(stage.shuffle.numPartitions)(0L))

  override def blocks(partition: Int): Seq[MapBlocks] = {
    val sizes = ShuffleBlocks.sizes(stage.mapStats.get.shuffleId, partition)
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
    // Batches were counted, and then made rows of.
    case ColumnarToRowExec(child) => countingIn(child)
    case MadeOf.Wrapped(child) => countingIn(child)
    case _ => None
  }

  override def sketch: Option[KeySketch] = counting.flatMap(_.sketch)

  override def keysNotCounted: Boolean = counting.exists(_.isLeftOut)

  override def rowBytes: Double = {
    val shuffled = stage.shuffle.runtimeStatistics
    shuffled.rowCount
      .filter(_ > 0)
      .map(n => shuffled.sizeInBytes.toDouble / n.toDouble)
      .getOrElse(0.0)
  }

  override def reading(specs: Seq[ShufflePartitionSpec]): SparkPlan =
    SplitReadSpecs.of(stage, specs)

  /** What is above reads the shuffle's rows as they come. */
  override def below(node: SparkPlan): PartitionSource = this
}
