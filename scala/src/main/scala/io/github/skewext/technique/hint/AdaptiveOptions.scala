package io.github.skewext.technique.hint

/**
 * The options of the technique `adaptive`: settings for the split of one join. None is an option
 * that is not given.
 */
case class AdaptiveOptions(
    factor: Option[Double],
    thresholdBytes: Option[Long],
    sliceBytes: Option[Long],
    maxSlices: Option[Int],
    maxRereadFactor: Option[Double],
    minGain: Option[Double])

object AdaptiveOptions {

  private val Factor = "factor"
  private val Threshold = "threshold"
  private val SliceBytes = "slice_bytes"
  private val MaxSlices = "max_slices"
  private val MaxReread = "max_reread_factor"
  private val MinGain = "min_gain"

  val names: Seq[String] = Seq(Factor, Threshold, SliceBytes, MaxSlices, MaxReread, MinGain)

  /** Throws an error for an option with a wrong value. */
  def of(options: TechniqueOptions): AdaptiveOptions = AdaptiveOptions(
    factor = options.double(Factor, least = 1),
    thresholdBytes = options.bytes(Threshold),
    sliceBytes = options.bytes(SliceBytes),
    maxSlices = options.int(MaxSlices, 2, Int.MaxValue),
    maxRereadFactor = options.double(MaxReread, least = 1),
    minGain = options.double(MinGain, least = 1))
}
