package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.DataFrameJoinSuite

/** Spark's own tests of joins of DataFrames, with all of them rewritten. */
class ForcedDataFrameJoinSuite extends DataFrameJoinSuite with RewriteForced {
  override protected def multiJoins: Long = 40
}
