package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.SparkConf
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sources.DisableUnnecessaryBucketedScanWithoutHiveSupportSuiteAE

/** As [[SparkBucketedScanSuite]], in adaptive execution. */
class SparkBucketedScanAdaptiveSuite
    extends DisableUnnecessaryBucketedScanWithoutHiveSupportSuiteAE
    with SparkSuite {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SQLConf.COALESCE_BUCKETS_IN_JOIN_ENABLED.key, "false")
}
