package io.github.skewext.skew.plan

/**
 * A marking: tasks before the join that compute the matched keys.
 *
 * @param longestTask the longest marking task plus the join task that waits for it.
 * @param work the bytes that the marking tasks read, plus those that the residual reads
 *             afterwards.
 */
private[skew] case class Marking(slices: Seq[Slice], longestTask: Double, work: Double)

private[skew] object Marking {

  /** The least gain for which marking pays. Its main cost is the wait for its tasks. */
  private val MarkingGain = 1.25

  /**
   * The slices for the marking tasks of an input, or nothing if marking is not possible. Blocks are
   * not divided by hash, because every task of a block would read all its keys.
   */
  def slices(input: SkewInput, partition: Int, target: Double, settings: SkewSettings): Seq[Slice] =
    if (settings.marking && input.sliceable && input.sizes.wholeBytes.isEmpty) {
      val most = input.bytes(partition).toDouble / settings.maxSlices
      // A task that only reads keys can read more bytes.
      Slice.cut(
        input.sizes.blocks(partition),
        math.max(target / input.dropCost, most),
        cuttable = false)
    } else {
      Nil
    }

  /** The marking of an input, if it pays. */
  def of(
      input: SkewInput,
      partition: Int,
      slices: Seq[Slice],
      own: Long,
      others: Long,
      longestPiece: Double): Option[Marking] =
    if (slices.size >= 2) {
      val works = slices.map(s => input.dropCost * (others + s.bytesRead))
      val sent = slices.map(s => math.min(s.bytes.toDouble, input.candidates(partition))).sum
      val longest = works.max + math.max(longestPiece, others + sent)
      val streamed = math.max(longestPiece, others + input.dropCost * own)
      val read = slices.map(s => others + s.bytesRead).sum + others + sent
      if (streamed >= MarkingGain * longest) Some(Marking(slices, longest, read)) else None
    } else {
      None
    }
}
