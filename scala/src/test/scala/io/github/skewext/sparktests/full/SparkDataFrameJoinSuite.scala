package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.sql.DataFrameJoinSuite

/** Spark's own tests of joins of DataFrames. */
class SparkDataFrameJoinSuite extends DataFrameJoinSuite with SparkSuite {
  override protected def ourJoins: Long = 15
}
