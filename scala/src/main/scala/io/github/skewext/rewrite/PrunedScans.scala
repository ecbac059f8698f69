package io.github.skewext.rewrite

import org.apache.spark.sql.catalyst.expressions.{EqualTo, Expression, PredicateHelper}
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan}
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning.getFilterableTableScan
import org.apache.spark.sql.internal.SQLConf

/**
 * Scans of partitioned tables of which Spark reads a part, as joins of the query tell it while it
 * runs: `PartitionPruning`, which comes after the rewrite and goes through Spark's joins alone. To read
 * a whole table is dearer than a shuffle more.
 */
private[skewext] object PrunedScans extends PredicateHelper with JoinSelectionHelper {

  def of(plan: LogicalPlan, conf: SQLConf): Seq[LogicalPlan] =
    if (conf.dynamicPartitionPruningEnabled) {
      plan.collect { case join: Join => of(join, conf) }.flatten
    } else {
      Nil
    }

  private def of(join: Join, conf: SQLConf): Seq[LogicalPlan] = {
    val Join(left, right, joinType, condition, hint) = join
    def isOver(e: Expression, side: LogicalPlan): Boolean =
      e.references.nonEmpty && e.references.subsetOf(side.outputSet)
    // Spark makes use of a broadcast that there is anyway, or else it runs the other side twice.
    lazy val leftIsCheap = !conf.dynamicPartitionPruningReuseBroadcastOnly ||
      canBuildBroadcastLeft(joinType) &&
      (hintToBroadcastLeft(hint) || canBroadcastBySize(left, conf))
    lazy val rightIsCheap = !conf.dynamicPartitionPruningReuseBroadcastOnly ||
      canBuildBroadcastRight(joinType) &&
      (hintToBroadcastRight(hint) || canBroadcastBySize(right, conf))
    def pruned(l: Expression, r: Expression): Seq[LogicalPlan] = {
      val ofLeft =
        if (canPruneLeft(joinType) && isFiltered(right)) getFilterableTableScan(l, left) else None
      val ofRight =
        if (canPruneRight(joinType) && isFiltered(left)) getFilterableTableScan(r, right) else None
      ofLeft.filter(_ => rightIsCheap).toSeq ++ ofRight.filter(_ => leftIsCheap)
    }
    condition.toSeq.flatMap(splitConjunctivePredicates).flatMap {
      case EqualTo(a, b) if isOver(a, left) && isOver(b, right) => pruned(a, b)
      case EqualTo(a, b) if isOver(b, left) && isOver(a, right) => pruned(b, a)
      case _ => Nil
    }
  }

  private def isFiltered(plan: LogicalPlan): Boolean = !plan.isStreaming && plan.exists {
    case Filter(condition, _) => isLikelySelective(condition)
    case _ => false
  }
}
