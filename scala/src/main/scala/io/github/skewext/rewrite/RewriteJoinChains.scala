package io.github.skewext.rewrite

import io.github.skewext.join.MultiFullJoin

import org.apache.spark.sql.catalyst.expressions.{AttributeSet, EqualTo, Expression, PredicateHelper}
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning.getFilterableTableScan
import org.apache.spark.sql.internal.SQLConf

/**
 * Rewrites chains and trees of Spark's joins on one key into one multi-way join. For example, a
 * chain of full outer joins:
 * {{{
 * a FULL JOIN b USING (k) FULL JOIN c USING (k)
 *
 * Project (coalesce(k', c.k) AS k, v, w, x)           Project (k, v, w, x)
 * +- Join FullOuter (k' = c.k)                        +- MultiFullJoin [k] full outer, 3 inputs
 *    :- Project (coalesce(a.k, b.k) AS k', v, w)  =>     :- a
 *    :  +- Join FullOuter (a.k = b.k)                    :- b
 *    :     :- a                                          +- c
 *    :     +- b
 *    +- c
 * }}}
 * The rule traverses the plan from the bottom up. Two inputs that are joined on equal keys form a
 * tree ([[JoinTree]]), and so do two trees that are joined on the whole key of both
 * ([[JoinTreeMerger]]). Projections between the joins define columns in terms of the inputs. A tree
 * that cannot grow further becomes a multi-way join ([[JoinTreePlanner]]). If it has too few
 * inputs, its plan stays. Either way it is an input of the plan above.
 *
 * The rule is in the batch of Spark's own rules for operators, so that these apply to the new node.
 */
object RewriteJoinChains extends Rule[LogicalPlan] {

  /** Each chain begins with a full outer join or a multi-way join, which few queries have. */
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (plan.containsPattern(JOIN) && plan.exists(mayBegin)) withReasons(plan) else plan

  /** The same, with a reason on each join that stays, also of plans where no chain begins. */
  private[skewext] def withReasons(plan: LogicalPlan): LogicalPlan = {
    val hasMultiJoins = plan.exists(_.isInstanceOf[MultiFullJoin])
    new ChainRewriter(conf, hasMultiJoins, PrunedScans.of(plan, conf)).rewrite(plan)
  }

  private def mayBegin(node: LogicalPlan): Boolean = node match {
    case _: MultiFullJoin | Join(_, _, FullOuter, _, _) => true
    case _ => false
  }
}

/**
 * Finds scans of partitioned tables that Spark prunes at run time with keys from joins of the
 * query. Spark's `PartitionPruning` runs after the rewrite, and searches only Spark's joins. A join
 * with such a scan stays, because reading the whole table costs more than another shuffle.
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
    // Spark reads the keys from the join's broadcast. Without one it runs the other side twice, if
    // the settings allow that.
    lazy val leftIsCheap = !conf.dynamicPartitionPruningReuseBroadcastOnly ||
      canBuildBroadcastLeft(joinType) &&
      (hintToBroadcastLeft(hint) || mayBeSmall(left, conf))
    lazy val rightIsCheap = !conf.dynamicPartitionPruningReuseBroadcastOnly ||
      canBuildBroadcastRight(joinType) &&
      (hintToBroadcastRight(hint) || mayBeSmall(right, conf))
    def pruned(l: Expression, r: Expression): Seq[LogicalPlan] = {
      val ofLeft =
        if (canPruneLeft(joinType) && isFiltered(right)) scan(l, left) else None
      val ofRight =
        if (canPruneRight(joinType) && isFiltered(left)) scan(r, right) else None
      ofLeft.filter(_ => rightIsCheap).toSeq ++ ofRight.filter(_ => leftIsCheap)
    }
    condition.toSeq.flatMap(splitConjunctivePredicates).flatMap {
      case EqualTo(a, b) if isOver(a, left) && isOver(b, right) => pruned(a, b)
      case EqualTo(a, b) if isOver(b, left) && isOver(a, right) => pruned(b, a)
      case _ => Nil
    }
  }

  /** A table that Spark has not scanned yet does not know its size without some work. */
  private def mayBeSmall(plan: LogicalPlan, conf: SQLConf): Boolean =
    plan.exists(_.isInstanceOf[DataSourceV2Relation]) || canBroadcastBySize(plan, conf)

  /** The scan that Spark prunes by an expression. */
  private def scan(e: Expression, plan: LogicalPlan): Option[LogicalPlan] =
    getFilterableTableScan(e, plan).orElse {
      // Spark makes scans of such tables after the rewrite, and asks them then.
      findExpressionAndTrackLineageDown(e, plan).collect {
        case (column, table: DataSourceV2Relation) if isPartitioned(table, column.references) =>
          table
      }
    }

  private def isPartitioned(table: DataSourceV2Relation, columns: AttributeSet): Boolean = {
    val by = table.table.partitioning.flatMap(_.references).map(_.fieldNames.head)
    columns.forall(column => by.exists(SQLConf.get.resolver(_, column.name)))
  }

  private def isFiltered(plan: LogicalPlan): Boolean = !plan.isStreaming && plan.exists {
    case Filter(condition, _) => isLikelySelective(condition)
    case _ => false
  }
}
