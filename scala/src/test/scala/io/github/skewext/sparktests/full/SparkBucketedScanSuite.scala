package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.SparkConf
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sources.DisableUnnecessaryBucketedScanWithoutHiveSupportSuite

/**
 * Spark's own tests of which scans read by the bucket. They join 8 buckets with 4, which we would join
 * without a shuffle; where Spark's own setting is set, its joins are left to it.
 */
class SparkBucketedScanSuite
    extends DisableUnnecessaryBucketedScanWithoutHiveSupportSuite
    with SparkSuite {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SQLConf.COALESCE_BUCKETS_IN_JOIN_ENABLED.key, "false")
}
