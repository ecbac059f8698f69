package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.execution.adaptive.AdaptiveQueryExecSuite

/** Spark's own tests of adaptive execution, with all joins rewritten. */
class ForcedAdaptiveQueryExecSuite extends AdaptiveQueryExecSuite with RewriteForced
