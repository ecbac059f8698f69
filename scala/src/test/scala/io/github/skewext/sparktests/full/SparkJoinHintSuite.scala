package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.sql.JoinHintSuite

/** Spark's own tests of hints on joins: what has a hint is as it is without skewext. */
class SparkJoinHintSuite extends JoinHintSuite with SparkSuite
