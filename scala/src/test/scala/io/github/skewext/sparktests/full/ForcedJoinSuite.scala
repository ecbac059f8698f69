package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.JoinSuite

/** Spark's own tests of joins, with all of them rewritten. */
class ForcedJoinSuite extends JoinSuite with RewriteForced
