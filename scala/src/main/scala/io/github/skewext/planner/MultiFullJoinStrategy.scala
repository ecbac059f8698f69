package io.github.skewext.planner

import io.github.skewext.execution.MultiFullJoinExec
import io.github.skewext.internal.SkewConf
import io.github.skewext.optimizer.LowerMultiFullJoin
import io.github.skewext.plan.InputRole.Optional
import io.github.skewext.plan.{MultiFullJoin, RewriteReason}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
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
      val areInStorage = StoragePartitions.areIn(j.children, SQLConf.get)
      // Of what is partitioned in its storage it has to be known how before there are exchanges.
      val inputs = j.children.indices.map(i => planned(j, i, now = areInStorage(i)))
      StoragePartitions.aligned(inputs, j.keys, SQLConf.get) match {
        case Some(aligned) => operator(j, aligned).copy(storagePartitioned = true) :: Nil
        case None if isSparks(j, inputs) => planLater(asSparksJoins(j)) :: Nil
        case None => operator(j, inputs) :: Nil
      }
    case _ => Nil
  }

  private def operator(j: MultiFullJoin, inputs: Seq[SparkPlan]): MultiFullJoinExec =
    MultiFullJoinExec(inputs, j.keys, j.keyColumns, j.keyOutput, j.roles, j.indicator, order)

  /**
   * Whether it was made of two full outer joins, of which Spark does the first without a shuffle: two
   * exchanges are left then, and three would be for our operator.
   */
  private def isSparks(j: MultiFullJoin, inputs: Seq[SparkPlan]): Boolean =
    inputs.size == 3 && j.roles.forall(_ == Optional) && RewriteReason.madeOf(j).isDefined &&
      StoragePartitions.aligned(inputs.take(2), j.keys.take(2), SQLConf.get).isDefined

  private def asSparksJoins(j: MultiFullJoin): LogicalPlan = {
    val plan = LowerMultiFullJoin.normalized(j)
    plan.foreach {
      case join: Join =>
        join.unsetTagValue(LowerMultiFullJoin.MadeFrom)
        RewriteReason.set(join, RewriteReason.Detailed(RewriteReason.StoragePartitions, None))
      case _ =>
    }
    plan
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
   *
   * @param now whether its plan is needed before exchanges are planned
   */
  private def planned(join: MultiFullJoin, i: Int, now: Boolean): SparkPlan = {
    val input = join.children(i)
    val filtered = RuntimeFilters.filtered(join, i, broadcastTo = None)
    if (!now && (filtered eq input)) {
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
