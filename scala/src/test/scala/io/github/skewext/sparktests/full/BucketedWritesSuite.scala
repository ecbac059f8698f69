package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.sql.sources.BucketedWriteWithoutHiveSupportSuite

/** Spark's own tests of writing tables by bucket. */
class BucketedWritesSuite extends BucketedWriteWithoutHiveSupportSuite with SparkSuite
