package io.github.skewext.plan

import io.github.skewext.internal.SkewConf

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/**
 * The settings for splits: Spark's own, and limits that Spark does not have.
 *
 * @param files the files that each task of the join writes, if its tasks write files.
 */
case class SkewSettings(
    factor: Double,
    thresholdBytes: Long,
    advisoryBytes: Long,
    maxSlices: Int,
    maxRereadFactor: Double,
    minGain: Double,
    marking: Boolean,
    files: Option[TaskFiles] = None) {

  /** These settings, overridden by the options of a hint. */
  def changedBy(options: TechniqueOptions): SkewSettings = copy(
    factor = options.double(SkewSettings.Factor, least = 1).getOrElse(factor),
    thresholdBytes = options.bytes(SkewSettings.Threshold).getOrElse(thresholdBytes),
    advisoryBytes = options.bytes(SkewSettings.SliceBytes).getOrElse(advisoryBytes),
    maxSlices = options.int(SkewSettings.MaxSlices, 2, Int.MaxValue).getOrElse(maxSlices),
    maxRereadFactor = options.double(SkewSettings.MaxReread, least = 1).getOrElse(maxRereadFactor),
    minGain = options.double(SkewSettings.MinGain, least = 1).getOrElse(minGain))

  /** The size above which a partition is skewed, as in Spark's `OptimizeSkewedJoin`. */
  def skewThreshold(sizes: Seq[Long]): Long =
    math.max(thresholdBytes, (SkewSettings.median(sizes) * factor).toLong)

  /**
   * The target size of slices: the mean size of the other partitions, but at least the advisory
   * size.
   */
  def targetBytes(sizes: Seq[Long], threshold: Long): Long = {
    val others = sizes.filter(_ <= threshold)
    if (others.isEmpty) advisoryBytes else math.max(advisoryBytes, others.sum / others.size)
  }
}

object SkewSettings {

  def of(conf: SQLConf): SkewSettings = SkewSettings(
    factor = conf.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_FACTOR),
    thresholdBytes = conf.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_THRESHOLD),
    advisoryBytes = conf.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES),
    maxSlices = conf.getConf(SkewConf.SKEW_MAX_SLICES),
    maxRereadFactor = conf.getConf(SkewConf.SKEW_MAX_REREAD_FACTOR),
    minGain = conf.getConf(SkewConf.SKEW_MIN_GAIN),
    marking = conf.getConf(SkewConf.SKEW_MARKING))

  /**
   * The settings for one join of a plan: those of the session, overridden by a hint for `adaptive`.
   */
  def of(conf: SQLConf, join: SparkPlan): SkewSettings =
    JoinHints
      .logicalJoin(join)
      .flatMap(TechniqueHint.of)
      .collect { case TechniqueHint.Made(TechniqueHint.Adaptive, options, _) => options }
      .fold(of(conf))(of(conf).changedBy(_))
      .copy(files = WrittenJoin.filesOf(join))

  /** The options of the technique `adaptive`. */
  private val Factor = "factor"
  private val Threshold = "threshold"
  private val SliceBytes = "slice_bytes"
  private val MaxSlices = "max_slices"
  private val MaxReread = "max_reread_factor"
  private val MinGain = "min_gain"

  val optionNames: Seq[String] = Seq(Factor, Threshold, SliceBytes, MaxSlices, MaxReread, MinGain)

  private[skewext] def median(sizes: Seq[Long]): Long = {
    val sorted = sizes.sorted
    val n = sorted.size
    if (n == 0) 1L
    else if (n % 2 == 0) math.max((sorted(n / 2) + sorted(n / 2 - 1)) / 2, 1L)
    else math.max(sorted(n / 2), 1L)
  }
}
