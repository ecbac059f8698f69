package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.CachedTableSuite

/** Spark's own tests of cached tables, with all joins rewritten. */
class ForcedCachedTableSuite extends CachedTableSuite with RewriteForced {

  override protected def leftOut: Map[String, String] = Map(
    "A cached table preserves the partitioning and ordering of its cached SparkPlan" ->
      "counts exchanges of Spark's own class; those below our joins are of another")
}
