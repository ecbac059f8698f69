package io.github.skewext.join

import io.github.skewext.join.InputRole.Optional
import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.join.optimizer.LowerMultiFullJoin
import io.github.skewext.platform.{NamedStrategy, SkewConf}

import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf

/** Plans a [[MultiFullJoin]] as one operator that joins all inputs in one pass. */
object MultiFullJoinStrategy extends NamedStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case _: MultiFullJoin if SkewConf.excludes(SQLConf.get, ruleName) => Nil
    case BroadcastSmallInputs(joins) => planLater(joins) :: Nil
    case j: MultiFullJoin =>
      val areInStorage = StoragePartitions.areIn(j.children, SQLConf.get)
      // Inputs that are partitioned in their storage are planned now, because their partitioning
      // decides whether the join needs exchanges.
      val inputs =
        j.children.indices.map(i => RuntimeFilters.planned(j, i, areInStorage(i), planLater))
      StoragePartitions.aligned(inputs, j.keys, SQLConf.get) match {
        case Some(aligned) => operator(j, aligned).copy(storagePartitioned = true) :: Nil
        case None if isSparks(j, inputs) => planLater(asSparksJoins(j)) :: Nil
        case None => operator(j, inputs) :: Nil
      }
    case _ => Nil
  }

  private def operator(j: MultiFullJoin, inputs: Seq[SparkPlan]): MultiFullJoinExec = {
    j.warnOfHints()
    MultiFullJoinExec(inputs, j.keys, j.keyColumns, j.keyOutput, j.roles, j.indicator)
  }

  /**
   * Whether the join was rewritten from two full outer joins, and Spark performs the first one
   * without a shuffle. Spark's plan then needs two exchanges, and the operator would need three.
   */
  private def isSparks(j: MultiFullJoin, inputs: Seq[SparkPlan]): Boolean =
    inputs.size == 3 && j.roles.forall(_ == Optional) && JoinOrigin.rewrittenFrom(j).isDefined &&
      StoragePartitions.aligned(inputs.take(2), j.keys.take(2), SQLConf.get).isDefined

  private def asSparksJoins(j: MultiFullJoin): LogicalPlan = {
    val plan = LowerMultiFullJoin.normalized(j)
    plan.foreach {
      case join: Join => JoinOrigin.set(join, JoinOrigin.Undone)
      case _ =>
    }
    plan
  }

  /**
   * Plans the join as Spark's own joins. Spark calls this strategy only if the one above has
   * planned nothing, because it failed or is excluded.
   */
  object AsSparksJoins extends SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case j: MultiFullJoin => planLater(LowerMultiFullJoin.normalized(j)) :: Nil
      case _ => Nil
    }
  }
}
