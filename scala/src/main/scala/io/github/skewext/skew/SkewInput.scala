package io.github.skewext.skew

import io.github.skewext.multijoin.InputRole

/**
 * What the planner knows of an input.
 *
 * @param bytes its size in every partition
 * @param blocks what map tasks wrote for a partition, in their order; covers all map tasks
 * @param sliceable whether a join with a part of its shuffled rows is a part of the join
 * @param cuttable whether a block may be divided by what is in the rows
 * @param stable whether it has the same rows when they are made again, so that tasks that read them at
 *               different times agree on which keys it has
 * @param inRanges whether a task can read its share of a block alone, when it is known where rows
 *                 begin
 * @param wholeBytes if it is made of several shuffles, what of `bytes` is read whole by every slice
 * @param weights by how much the work with each partition is more than its bytes say, see
 *                [[RowWeights]]; nothing if that is not known
 * @param dropCost what a byte costs that is read and dropped, where one that is joined costs 1
 */
case class SkewInput(
    role: InputRole,
    bytes: IndexedSeq[Long],
    blocks: Int => Seq[MapBlocks],
    sliceable: Boolean = true,
    cuttable: Boolean = true,
    stable: Boolean = true,
    inRanges: Boolean = false,
    wholeBytes: Option[IndexedSeq[Long]] = None,
    weights: IndexedSeq[Double] = IndexedSeq.empty,
    dropCost: Double = SkewPlanner.StreamCost) {

  def slicedBytes(partition: Int): Long =
    bytes(partition) - wholeBytes.map(_(partition)).getOrElse(0L)

  /** The same with the bytes that the work says. */
  def weighed: SkewInput = if (weights.isEmpty) this
  else {
    def weigh(partition: Int)(size: Long) = (size * weights(partition)).toLong
    copy(
      bytes = bytes.indices.map(p => weigh(p)(bytes(p))),
      blocks = p => blocks(p).map(block => block.copy(bytes = weigh(p)(block.bytes))),
      weights = IndexedSeq.empty)
  }

  /** What a byte of it costs that a residual drops; shuffles that make an input are joined for that. */
  def streamCost: Double = if (wholeBytes.isEmpty) dropCost else 1.0
}

/** The settings that decide about splits: Spark's own, and the limits that Spark has none for. */
case class SkewSettings(
    factor: Double,
    thresholdBytes: Long,
    advisoryBytes: Long,
    maxSlices: Int,
    maxRereadFactor: Double,
    minGain: Double,
    marking: Boolean) {

  /** From which size on a partition is skewed: as Spark's own rule has it. */
  def skewThreshold(sizes: Seq[Long]): Long =
    math.max(thresholdBytes, (SkewSettings.median(sizes) * factor).toLong)

  /** How large slices should be: as other partitions are, but at least the advisory size. */
  def targetBytes(sizes: Seq[Long], threshold: Long): Long = {
    val others = sizes.filter(_ <= threshold)
    if (others.isEmpty) advisoryBytes else math.max(advisoryBytes, others.sum / others.size)
  }
}

object SkewSettings {
  private[skew] def median(sizes: Seq[Long]): Long = {
    val sorted = sizes.sorted
    val n = sorted.size
    if (n == 0) 1L
    else if (n % 2 == 0) math.max((sorted(n / 2) + sorted(n / 2 - 1)) / 2, 1L)
    else math.max(sorted(n / 2), 1L)
  }
}
