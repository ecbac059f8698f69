package io.github.skewext.multijoin

import io.github.skewext.SkewConf

import org.apache.spark.sql.Strategy
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/** Plans a [[MultiFullJoin]] as the one operator that does it in one pass. */
object MultiFullJoinStrategy extends Strategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case BroadcastSmallInputs(joins) => planLater(joins) :: Nil
    case j: MultiFullJoin =>
      MultiFullJoinExec(
        j.children.map(planLater),
        j.keys,
        j.keyColumns,
        j.keyOutput,
        j.roles,
        j.indicator,
        order) :: Nil
    case _ => Nil
  }

  private def order: MultiFullJoinExec.Order = {
    val name = SQLConf.get.getConf(SkewConf.MULTI_JOIN_ORDER)
    MultiFullJoinExec.orders.find(_.name == name).get
  }
}
