package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.execution.joins.ExistenceJoinSuite

/** As `SparkOuterJoinSuite`, for semi, anti and existence joins. */
class SparkExistenceJoinSuite extends ExistenceJoinSuite with RewriteForced
