package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.sql.sources.DisableUnnecessaryBucketedScanWithoutHiveSupportSuite

/** Spark's own tests of which scans read by the bucket. */
class SparkBucketedScanSuite
    extends DisableUnnecessaryBucketedScanWithoutHiveSupportSuite
    with SparkSuite
