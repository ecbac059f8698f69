package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.sql.CachedTableSuite

/** Spark's own tests of cached tables. */
class SparkCachedTableSuite extends CachedTableSuite with SparkSuite {

  override protected def leftOut: Map[String, String] = Map(
    "A cached table preserves the partitioning and ordering of its cached SparkPlan" ->
      "counts exchanges of Spark's own class; those below our joins are of another")
}
