package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.execution.joins.InnerJoinSuite

/** As `SparkOuterJoinSuite`, for inner joins. */
class SparkInnerJoinSuite extends InnerJoinSuite with RewriteForced
