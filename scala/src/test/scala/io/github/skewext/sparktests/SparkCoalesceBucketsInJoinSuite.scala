package io.github.skewext.sparktests

import org.apache.spark.sql.execution.bucketing.CoalesceBucketsInJoinSuite

/** Spark's own tests of joins of tables with different numbers of buckets, with its rule beside ours. */
class SparkCoalesceBucketsInJoinSuite extends CoalesceBucketsInJoinSuite with SparkSuite
