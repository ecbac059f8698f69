package io.github.skewext.plan

import org.apache.spark.sql.execution.SparkPlan

/** An operator of ours that gives the same rows again if its children do. */
trait KeepsStableRows extends SparkPlan {

  /** Whether its rows are its child's, as they are. */
  def passesColumns: Boolean = false
}
