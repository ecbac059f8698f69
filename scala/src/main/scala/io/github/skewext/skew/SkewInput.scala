package io.github.skewext.skew

import io.github.skewext.execution.split.MapBlocks
import io.github.skewext.plan.InputRole

/**
 * What the planner knows of an input.
 *
 * @param bytes its size in every partition
 * @param blocks what map tasks wrote for a partition, in their order; covers all map tasks
 * @param sliceable whether a join with a part of its shuffled rows is a part of the join
 * @param cuttable whether a block may be divided by what is in the rows; asked where something is
 *                 skewed, as `stable` is
 * @param stable whether it has the same keys when its rows are made again, so that tasks that read them
 *               at different times agree on them
 * @param rowsStable whether that holds of all columns, so that tasks agree on what is in a row
 * @param wholeBytes if it is made of several shuffles, what of `bytes` is read whole by every slice
 * @param weights by how much the work with each partition is more than its bytes say, see
 *                [[RowWeights]]; nothing if that is not known
 * @param replicable whether several tasks may join the same rows of it; if not, no other input can be
 *                   sliced
 * @param dropCost what a byte costs that is read and dropped, where one that is joined costs 1
 * @param equalRows whether so many rows of a partition are equal that they cannot be told apart
 */
case class SkewInput(
    role: InputRole,
    bytes: IndexedSeq[Long],
    blocks: Int => Seq[MapBlocks],
    sliceable: Boolean = true,
    cuttable: () => Boolean = () => true,
    stable: () => Boolean = () => true,
    rowsStable: () => Boolean = () => true,
    wholeBytes: Option[IndexedSeq[Long]] = None,
    weights: IndexedSeq[Double] = IndexedSeq.empty,
    replicable: Boolean = true,
    dropCost: Double = SkewPlanner.StreamCost,
    equalRows: Int => Boolean = _ => false) {

  def slicedBytes(partition: Int): Long =
    bytes(partition) - wholeBytes.map(_(partition)).getOrElse(0L)

  /** The same with the bytes that the work says. */
  def weighed: SkewInput = if (weights.isEmpty) this
  else {
    def weigh(partition: Int)(size: Long) = (size * weights(partition)).toLong
    copy(
      bytes = bytes.indices.map(p => weigh(p)(bytes(p))),
      blocks = p => blocks(p).map(block => block.copy(bytes = weigh(p)(block.bytes))),
      weights = IndexedSeq.empty,
      equalRows = p => weights(p) >= RowWeights.OfEqualRows)
  }

  /** Equal rows would all be one task's, and the others would read them in vain. */
  def isCuttable(partition: Int): Boolean = !equalRows(partition) && cuttable()

  /** What a byte of it costs that a residual drops; shuffles that make an input are joined for that. */
  def streamCost: Double = if (wholeBytes.isEmpty) dropCost else 1.0
}
