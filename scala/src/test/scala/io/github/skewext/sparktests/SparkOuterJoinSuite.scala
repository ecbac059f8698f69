package io.github.skewext.sparktests

import org.apache.spark.sql.execution.joins.OuterJoinSuite
import org.apache.spark.sql.skewext.OurJoinsByHand

/** Spark's own tests of operators for outer joins. */
class SparkOuterJoinSuite extends OuterJoinSuite with OurJoinsByHand {
  override protected def ourJoins: Long = 10
}
