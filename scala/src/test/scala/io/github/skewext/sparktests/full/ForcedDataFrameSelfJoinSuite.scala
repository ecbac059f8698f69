package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.DataFrameSelfJoinSuite

/** Spark's own tests of joins of a table with itself, with all of them rewritten. */
class ForcedDataFrameSelfJoinSuite extends DataFrameSelfJoinSuite with RewriteForced
