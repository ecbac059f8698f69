package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.sql.JoinSuite

/** Spark's own tests of joins, with the settings that skewext comes with. */
class SparkJoinSuite extends JoinSuite with SparkSuite
