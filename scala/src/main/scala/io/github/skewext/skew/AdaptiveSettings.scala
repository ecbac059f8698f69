package io.github.skewext.skew

import io.github.skewext.SkewConf

import org.apache.spark.sql.internal.SQLConf

/** The settings of a session that decide about splits. */
private[skewext] object AdaptiveSettings {

  def of(conf: SQLConf): SkewSettings = SkewSettings(
    factor = conf.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_FACTOR),
    thresholdBytes = conf.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_THRESHOLD),
    advisoryBytes = conf.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES),
    maxSlices = conf.getConf(SkewConf.SKEW_MAX_SLICES),
    maxRereadFactor = conf.getConf(SkewConf.SKEW_MAX_REREAD_FACTOR),
    minGain = conf.getConf(SkewConf.SKEW_MIN_GAIN),
    marking = conf.getConf(SkewConf.SKEW_MARKING))
}
