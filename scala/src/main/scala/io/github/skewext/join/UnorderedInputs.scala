package io.github.skewext.join

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** A node whose result does not depend on the order of its inputs' rows. */
private[skewext] trait UnorderedInputs extends LogicalPlan {

  /** The input, if any, whose rows are each in the result, whatever the others contain. */
  def keptInput: Option[Int] = None
}
