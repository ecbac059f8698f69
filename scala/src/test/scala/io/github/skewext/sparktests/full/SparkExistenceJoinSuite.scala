package io.github.skewext.sparktests.full

import org.apache.spark.sql.execution.joins.ExistenceJoinSuite
import org.apache.spark.sql.skewext.OurJoinsByHand

/** Spark's own tests of operators for semi, anti and existence joins. */
class SparkExistenceJoinSuite extends ExistenceJoinSuite with OurJoinsByHand {
  override protected def ourJoins: Long = 10
}
