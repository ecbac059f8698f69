package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.sql.DataFrameJoinSuite

/** Spark's own tests of joins of DataFrames, with the settings that skewext comes with. */
class SparkDataFrameJoinSuite extends DataFrameJoinSuite with SparkSuite
