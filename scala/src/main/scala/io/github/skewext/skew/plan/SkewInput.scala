package io.github.skewext.skew.plan

import io.github.skewext.join.InputRole

/**
 * An input of a join, as the planner sees it.
 *
 * @param sliceable whether joining a part of its shuffled rows gives a part of the result.
 * @param cuttable whether a block may be divided by a hash of its rows. Like `stable`, it is
 *                 evaluated only if a partition is skewed.
 * @param replicable whether several tasks may join the same rows of it. If not, no other input can
 *                   be sliced.
 * @param whole why each task must join all its rows, if it must.
 * @param dropCost the cost of reading a byte that is then dropped, relative to 1 for a byte that is
 *                 joined.
 * @param candidates for a partition, how many bytes a task before the join sends to the residual,
 *                   the task for rows that no slice matches. 0 if it sends only marks.
 */
case class SkewInput(
    role: InputRole,
    sizes: InputSizes,
    sliceable: Boolean = true,
    cuttable: () => Boolean = () => true,
    stable: Stability = Stability(),
    replicable: Boolean = true,
    whole: Option[SkewReason] = None,
    dropCost: Double = SkewPlanner.StreamCost,
    candidates: Int => Double = _ => 0.0) {

  def bytes: IndexedSeq[Long] = sizes.bytes

  def weighed: SkewInput = copy(sizes = sizes.weighed)

  /**
   * Whether the blocks of a partition can be divided by hash. All equal rows would go to one task,
   * and the other tasks would read them in vain.
   */
  def isCuttable(partition: Int): Boolean = !sizes.equalRows(partition) && cuttable()

  /**
   * The cost of a byte that a residual drops. If the input has several shuffles, they must be
   * joined before rows can be dropped.
   */
  def streamCost: Double = if (sizes.wholeBytes.isEmpty) dropCost else 1.0
}

/**
 * Whether recomputing the rows of an input gives the same ones.
 *
 * @param keys whether the keys are the same, so that tasks that read them at different times agree
 *             on the keys.
 * @param rows whether the values in all columns are the same.
 */
case class Stability(keys: () => Boolean = () => true, rows: () => Boolean = () => true)

/**
 * The sizes of an input.
 *
 * @param bytes its size in every partition; 0 only if it has no rows there.
 * @param blocks for every partition, the blocks of all map tasks, in the order of the map tasks.
 * @param wholeBytes if it has several shuffles, the part of `bytes` that every slice reads whole.
 * @param weights for every partition, the factor by which the work exceeds the bytes, see
 *                [[RowWeights]]; nothing if it is unknown.
 * @param equalRows for a partition, whether so many of its rows are equal that hashes cannot divide
 *                  them.
 */
case class InputSizes(
    bytes: IndexedSeq[Long],
    blocks: Int => Seq[MapBlocks] = _ => Nil,
    wholeBytes: Option[IndexedSeq[Long]] = None,
    weights: IndexedSeq[Double] = IndexedSeq.empty,
    equalRows: Int => Boolean = _ => false) {

  def sliced(partition: Int): Long = bytes(partition) - wholeBytes.fold(0L)(_(partition))

  /** The same sizes, with bytes multiplied by the weights. */
  def weighed: InputSizes = if (weights.isEmpty) this
  else {
    val least = weights.min
    def weigh(partition: Int)(size: Long) = (size * weights(partition)).toLong
    def weighAll(sizes: IndexedSeq[Long]) = sizes.indices.map(p => weigh(p)(sizes(p)))
    InputSizes(
      weighAll(bytes),
      p => blocks(p).map(block => block.copy(bytes = weigh(p)(block.bytes))),
      wholeBytes.map(weighAll),
      equalRows = p => weights(p) >= RowWeights.OfEqualRows * least)
  }
}
