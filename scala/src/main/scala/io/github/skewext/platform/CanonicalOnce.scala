package io.github.skewext.platform

import org.apache.spark.sql.catalyst.plans.QueryPlan

/**
 * A node that stays as it is when it is made canonical again. The columns that it makes or hides have
 * ids by their positions in the original, which a second time would be taken for those of its inputs.
 */
private[skewext] trait CanonicalOnce[P <: QueryPlan[P]] extends QueryPlan[P] { self: P =>
  override protected def doCanonicalize(): P =
    if (isCanonicalizedPlan) this else super.doCanonicalize()
}
