package io.github.skewext.planner

import io.github.skewext.execution.MultiFullJoinExec
import io.github.skewext.internal.SkewConf
import io.github.skewext.optimizer.LowerMultiFullJoin
import io.github.skewext.plan.MultiFullJoin

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf

/** Plans a [[MultiFullJoin]] as the one operator that does it in one pass. */
object MultiFullJoinStrategy extends SparkStrategy {

  /** As rules have them; the other strategies plan what rules have made, and must. */
  private[skewext] val ruleName: String = getClass.getName.stripSuffix("$")

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case _: MultiFullJoin if SkewConf.excludes(SQLConf.get, ruleName) => Nil
    case BroadcastSmallInputs(joins) => planLater(joins) :: Nil
    case j: MultiFullJoin =>
      MultiFullJoinExec(
        j.children.indices.map(planned(j, _)),
        j.keys,
        j.keyColumns,
        j.keyOutput,
        j.roles,
        j.indicator,
        order) :: Nil
    case _ => Nil
  }

  /**
   * Spark asks for it only where the strategy above has planned nothing, because it failed or is not
   * wanted: then the join is done by Spark's own.
   */
  object AsSparksJoins extends SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case j: MultiFullJoin => planLater(LowerMultiFullJoin.normalized(j)) :: Nil
      case _ => Nil
    }
  }

  /**
   * An input of which something is asked while the query runs is planned here: to adaptive execution
   * its plan must be that of the input which it knows.
   */
  private def planned(join: MultiFullJoin, i: Int): SparkPlan = {
    val input = join.children(i)
    val filtered = RuntimeFilters.filtered(join, i, broadcastTo = None)
    if (filtered eq input) {
      planLater(input)
    } else {
      val plan = SparkSession.active.sessionState.planner.plan(filtered).next()
      plan.setLogicalLink(input)
      plan
    }
  }

  private def order: MultiFullJoinExec.Order = {
    val name = SQLConf.get.getConf(SkewConf.MULTI_JOIN_ORDER)
    MultiFullJoinExec.orders.find(_.name == name).get
  }
}
