package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.sql.DataFrameSetOperationsSuite

/** Spark's own tests of set operations. */
class SparkDataFrameSetOperationsSuite extends DataFrameSetOperationsSuite with SparkSuite
