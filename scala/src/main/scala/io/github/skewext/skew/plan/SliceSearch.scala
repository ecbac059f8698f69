package io.github.skewext.skew.plan

import scala.annotation.tailrec

import io.github.skewext.join.InputRole.Optional

/**
 * The search for slices of one input in one partition. It begins with the smallest slices that the
 * settings allow, and grows them until the number of tasks and their work are within the limits.
 *
 * @param target the size of a slice; infinite if the input is not skewed by its size.
 */
private[plan] final class SliceSearch(
    partition: Int,
    inputs: Seq[SkewInput],
    input: Int,
    target: Double,
    hot: Option[HotOutput],
    settings: SkewSettings,
    mostTasks: Int) {

  private val skewed = inputs(input)
  private val own = skewed.sizes.sliced(partition)
  private val others = inputs.map(_.bytes(partition)).sum - own
  private val residual = needsResidual && others > 0

  /** Output with rows of the input is divided. All other output is in a single task. */
  private val divided = hot.map(_.byInput(input)).getOrElse(0.0)
  private val whole = hot.map(_.cost).getOrElse(0.0) - divided
  private val allowed = settings.maxRereadFactor * (own + others + divided + whole)
  private val bySize = !target.isInfinite
  private val mostSlices =
    math.min(settings.maxSlices, math.max(2, if (residual) mostTasks - 1 else mostTasks))

  private lazy val blocks = skewed.sizes.blocks(partition)
  private lazy val cuttable = skewed.isCuttable(partition)
  private lazy val toMark = Marking.slices(skewed, partition, target, settings)
  private lazy val nullKeysDivided =
    residual && inputs.indices.forall(i => i == input || inputs(i).stable.rows())

  private lazy val smallest: Double = {
    val wanted = hot.map(h => own / math.min(h.slices, h.maxSlices(input)))
    math.max(
      math.max(1.0, math.min(target, wanted.getOrElse(target))),
      own.toDouble / settings.maxSlices)
  }

  def found: Either[SkewReason, PartitionSplit] = obstacle.toLeft(smallest).flatMap(grow)

  private def obstacle: Option[SkewReason] =
    if (!SkewPlanner.mayBeSliced(inputs, input)) Some(SkewReason.MergeTarget)
    else if (!skewed.sliceable || 2 * own < skewed.bytes(partition))
      Some(SkewReason.InputNotSliceable)
    // Pieces and residual must agree on the matched keys.
    else if (residual && !inputs.forall(_.stable.keys())) Some(SkewReason.NotStable)
    else None

  @tailrec
  private def grow(size: Double): Either[SkewReason, PartitionSplit] = {
    val slices =
      if (bySize || !cuttable) Slice.cut(blocks, size, cuttable) else Slice.evenly(blocks, size)
    if (slices.size < 2) Left(whyNoSlices(size))
    else {
      val candidate = split(slices)
      if (slices.size <= mostSlices && candidate.cost.work <= allowed) Right(candidate)
      else grow(size * SliceSearch.Growth)
    }
  }

  private def whyNoSlices(size: Double): SkewReason =
    if (size > smallest) SkewReason.TooMuchReread
    else if (size >= own) SkewReason.LittleGain
    else SkewReason.OneBlock

  private def split(slices: Seq[Slice]): PartitionSplit = {
    val works = slices.map { s =>
      others + s.bytes + skewed.dropCost * (s.bytesRead - s.bytes) + divided * s.bytes / own
    }
    // Dropped bytes count in full here, because they are fetched over the network.
    val read = slices.map(s => others + s.bytesRead).sum
    val pieces = PartitionSplit(
      partition,
      input,
      slices,
      residual,
      SplitCost(works.max + whole, read + divided + whole),
      byOutput = !bySize,
      dividesNullKeys = nullKeysDivided)
    if (residual) withResidual(pieces, works.max) else pieces
  }

  /** The pieces and a residual, which reads marked keys if that is possible and allowed. */
  private def withResidual(pieces: PartitionSplit, longestPiece: Double): PartitionSplit =
    Marking
      .of(skewed, partition, toMark, own, others, longestPiece)
      .map { m =>
        pieces.copy(
          marking = m.slices,
          cost =
            SplitCost(math.max(m.longestTask, longestPiece) + whole, pieces.cost.work + m.work))
      }
      .filter(_.cost.work <= allowed)
      .getOrElse {
        val streamed = others + skewed.streamCost * own
        pieces.copy(cost =
          SplitCost(math.max(longestPiece, streamed) + whole, pieces.cost.work + own + others))
      }

  /**
   * Whether the output can contain keys that the input lacks. It cannot if the input is required,
   * or if no other input contributes rows.
   */
  private def needsResidual: Boolean =
    skewed.role == Optional && inputs.indices.exists(j => j != input && inputs(j).role.isShown)
}

private object SliceSearch {
  private val Growth = 1.25
}
