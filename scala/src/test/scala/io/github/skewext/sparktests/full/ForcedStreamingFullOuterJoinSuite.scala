package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.streaming.StreamingFullOuterJoinSuite

/** Spark's own tests of full outer joins of streams, which must not be rewritten. */
class ForcedStreamingFullOuterJoinSuite extends StreamingFullOuterJoinSuite with RewriteForced
