package io.github.skewext.rewrite

import io.github.skewext.internal.SkewConf
import io.github.skewext.plan.MultiFullJoin

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Makes one multi-way join of chains and trees of Spark's joins that are one: the full outer joins of
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
 * The rule goes up the plan. Two inputs that are joined on equal keys are a group ([[JoinTree]]), and
 * so are two groups that are joined on the whole key of both ([[JoinTreeMerger]]). Projections in between
 * say what the columns are in terms of the inputs. Where nothing more can be joined, the group becomes
 * a plan ([[JoinTreePlanner]]), or stays as it is if it has too few inputs; either way it is an input of
 * what is above.
 *
 * It is in the batch of Spark's own rules about operators, so that these see the new node.
 */
object RewriteJoinChains extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (SkewConf.enabled(conf)) {
      val hasMultiJoins = plan.exists(_.isInstanceOf[MultiFullJoin])
      if (hasMultiJoins || plan.containsPattern(JOIN)) {
        new ChainRewriter(conf, hasMultiJoins, PrunedScans.of(plan, conf)).rewrite(plan)
      } else {
        plan
      }
    } else {
      plan
    }
}
