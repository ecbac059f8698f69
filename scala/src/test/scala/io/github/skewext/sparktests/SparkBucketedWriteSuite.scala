package io.github.skewext.sparktests

import org.apache.spark.sql.sources.BucketedWriteWithoutHiveSupportSuite

/** Spark's own tests of writing tables by bucket. */
class SparkBucketedWriteSuite extends BucketedWriteWithoutHiveSupportSuite with SparkSuite
