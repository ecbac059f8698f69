package io.github.skewext.sparktests

import org.apache.spark.sql.execution.joins.InnerJoinSuite

/** As [[SparkOuterJoinSuite]], for inner joins. */
class SparkInnerJoinSuite extends InnerJoinSuite with RewriteForced
