package io.github.skewext.join

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils

/** The number of rows of a plan: that of its statistics, or its size by the width of a row. */
private[skewext] object EstimatedRows {

  def of(plan: LogicalPlan): BigInt = plan.stats.rowCount.getOrElse(
    plan.stats.sizeInBytes / EstimationUtils.getSizePerRow(plan.output).max(1))
}
