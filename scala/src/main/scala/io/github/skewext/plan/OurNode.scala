package io.github.skewext.plan

import io.github.skewext.SkewExtensions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * A node that only skewext's strategies can plan. A DataFrame of another session of the application
 * may bring it into a session that was started without skewext.
 */
trait OurNode extends LogicalPlan {

  /**
   * Spark copies each plan before it optimizes it, with the query's session active. This is the only
   * call by which a node can register its strategies there.
   */
  override def clone(): LogicalPlan = {
    SparkSession.getActiveSession.foreach(SkewExtensions.register)
    super.clone()
  }
}
