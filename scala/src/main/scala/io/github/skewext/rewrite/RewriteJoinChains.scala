package io.github.skewext.rewrite

import io.github.skewext.join.MultiFullJoin

import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

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
