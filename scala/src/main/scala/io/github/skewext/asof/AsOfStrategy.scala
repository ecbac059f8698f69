package io.github.skewext.asof

import io.github.skewext.asof.exec.{AsOfJoinExec, LatestRowsExec}

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** Plans [[MultiAsOfJoin]] and [[LatestRows]], which nothing else can plan. */
object AsOfStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case j: MultiAsOfJoin =>
      AsOfJoinExec(
        j.children.map(planLater),
        j.keys,
        j.times,
        j.matches,
        j.ties,
        j.within,
        j.inner) :: Nil
    case LatestRows(keys, order, child) => LatestRowsExec(keys, order, planLater(child)) :: Nil
    case _ => Nil
  }
}
