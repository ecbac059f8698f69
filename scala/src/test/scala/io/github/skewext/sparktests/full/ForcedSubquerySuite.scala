package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.SubquerySuite

/** Spark's own tests of subqueries, with all joins rewritten. */
class ForcedSubquerySuite extends SubquerySuite with RewriteForced
