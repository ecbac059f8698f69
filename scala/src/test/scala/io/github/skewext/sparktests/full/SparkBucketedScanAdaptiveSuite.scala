package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.sql.sources.DisableUnnecessaryBucketedScanWithoutHiveSupportSuiteAE

/** As [[SparkBucketedScanSuite]], in adaptive execution. */
class SparkBucketedScanAdaptiveSuite
    extends DisableUnnecessaryBucketedScanWithoutHiveSupportSuiteAE
    with SparkSuite
