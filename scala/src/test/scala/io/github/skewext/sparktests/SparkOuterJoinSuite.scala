package io.github.skewext.sparktests

import org.apache.spark.sql.execution.joins.OuterJoinSuite

/** Spark's own tests of operators for outer joins. They are put into plans by hand, so only the rules for physical plans can do something to them. */
class SparkOuterJoinSuite extends OuterJoinSuite with RewriteForced
