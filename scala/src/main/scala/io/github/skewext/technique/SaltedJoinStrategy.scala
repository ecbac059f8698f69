package io.github.skewext.technique

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** Plans the operator that adds salts. The join on them is Spark's. */
object SaltedJoinStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case SaltKeys(keys, side, hot, hotRows, nullCells, cell, kind, child) =>
      SaltKeysExec(keys, side, hot, hotRows, nullCells, cell, kind, planLater(child)) :: Nil
    case _ => Nil
  }
}
