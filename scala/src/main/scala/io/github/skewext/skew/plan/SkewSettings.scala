package io.github.skewext.skew.plan

import io.github.skewext.platform.SkewConf
import io.github.skewext.technique.hint.AdaptiveOptions

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
  def changedBy(options: AdaptiveOptions): SkewSettings = copy(
    factor = options.factor.getOrElse(factor),
    thresholdBytes = options.thresholdBytes.getOrElse(thresholdBytes),
    advisoryBytes = options.sliceBytes.getOrElse(advisoryBytes),
    maxSlices = options.maxSlices.getOrElse(maxSlices),
    maxRereadFactor = options.maxRereadFactor.getOrElse(maxRereadFactor),
    minGain = options.minGain.getOrElse(minGain))

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

  /** Each slice of a partition is one task, which reads the other inputs of the partition again. */
  private val MaxSlices = 256

  def of(conf: SQLConf): SkewSettings = SkewSettings(
    factor = conf.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_FACTOR),
    thresholdBytes = conf.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_THRESHOLD),
    advisoryBytes = conf.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES),
    maxSlices = MaxSlices,
    maxRereadFactor = conf.getConf(SkewConf.SKEW_MAX_REREAD_FACTOR),
    minGain = conf.getConf(SkewConf.SKEW_MIN_GAIN),
    marking = conf.getConf(SkewConf.SKEW_MARKING))

  private[skewext] def median(sizes: Seq[Long]): Long =
    if (sizes.isEmpty) 1L else math.max(RowWeights.median(sizes.map(_.toDouble)).toLong, 1L)
}
