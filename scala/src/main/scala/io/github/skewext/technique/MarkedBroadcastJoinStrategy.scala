package io.github.skewext.technique

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** Plans a [[MarkedBroadcastJoin]] as its operator. */
object MarkedBroadcastJoinStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case j: MarkedBroadcastJoin =>
      MarkedBroadcastJoinExec(
        planLater(j.large),
        planLater(j.small),
        planLater(j.seen),
        j.largeKeys,
        j.smallKeys,
        j.seenKeys,
        j.rowId,
        j.joinType,
        j.smallSide) :: Nil
    case _ => Nil
  }
}
