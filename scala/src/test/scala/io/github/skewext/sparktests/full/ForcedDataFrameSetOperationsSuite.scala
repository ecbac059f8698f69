package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.DataFrameSetOperationsSuite

/** Spark's own tests of set operations, with all joins rewritten. */
class ForcedDataFrameSetOperationsSuite extends DataFrameSetOperationsSuite with RewriteForced
