package org.apache.spark.sql.skewext

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.ShuffledJoin

/** Code that Spark 4.2 has changed. */
private[skewext] trait Until41Shims {

  /** Whether the plan is a join whose partitions Spark has split. */
  def isSkewJoin(plan: SparkPlan): Boolean = plan match {
    case join: ShuffledJoin => join.isSkewJoin
    case _ => false
  }
}
