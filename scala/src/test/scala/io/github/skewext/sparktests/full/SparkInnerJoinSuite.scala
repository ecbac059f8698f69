package io.github.skewext.sparktests.full

import org.apache.spark.sql.execution.joins.InnerJoinSuite
import org.apache.spark.sql.skewext.OurJoinsByHand

/** Spark's own tests of operators for inner joins. */
class SparkInnerJoinSuite extends InnerJoinSuite with OurJoinsByHand {
  override protected def ourJoins: Long = 10
}
