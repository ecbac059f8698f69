package io.github.skewext.optimizer

import io.github.skewext.execution.MultiFullJoinExec
import io.github.skewext.internal.SkewConf
import io.github.skewext.plan.InputRole.Required
import io.github.skewext.plan.{MultiFullJoin, TechniqueHint}

import org.apache.spark.sql.catalyst.plans.logical.{BROADCAST, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Broadcasts the inputs that have a broadcast hint, whatever their sizes: Spark's own joins do so, of
 * the multi-way join of the other inputs with each of them.
 * {{{
 * MultiFullJoin [k]                         Project (k, va, vb, vc)
 * :- a (va, required)                       +- Join LEFT OUTER, hint: broadcast c
 * :- b (vb, optional)                 =>       :- MultiFullJoin [k]
 * +- c (vc, optional, hint: broadcast)         :  :- a
 *                                              :  +- b
 *                                              +- c
 * }}}
 * A required input is joined below instead, where Spark's chain would join it before it shuffles.
 *
 * All keys of the result must be keys of the other inputs, so one of those must be required. Where all
 * required inputs have the hint, the largest of them is not broadcast.
 */
object BroadcastHintedInputs extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) {
      case join: MultiFullJoin if join.hints.nonEmpty =>
        val inputs = join.children.indices.filter { i =>
          isHinted(join, i) && obstacle(join, i).isEmpty
        }
        if (inputs.isEmpty) {
          join
        } else {
          val what = TechniqueHint.OfMultiJoin(
            MultiFullJoin.describe(join.keyOutput.map(_.name), join.roles, join.indicator))
          join.broadcasting(inputs, TechniqueHint(what, Some(BROADCAST)))
        }
    }

  /** Why the hint of an input of the operator has no effect; none if there is no hint. */
  def unused(join: MultiFullJoin, i: Int): Option[String] = join.hint(i).map {
    case _ if isHinted(join, i) => obstacle(join, i).getOrElse(s"the rule $ruleName did not run")
    case hint if hint.strategy.isDefined => "one operator joins all inputs, in its own way"
    case _ => "it is a hint for a join of two inputs"
  }

  private def isHinted(join: MultiFullJoin, i: Int): Boolean =
    join.strategyHint(i).contains(BROADCAST)

  /** Why the input cannot be broadcast. */
  private def obstacle(join: MultiFullJoin, i: Int): Option[String] = {
    val required = join.roles.indices.filter(join.roles(_) == Required)
    lazy val largest = required.maxBy(join.children(_).stats.sizeInBytes)
    if (required.forall(_ == i)) {
      Some("no other input is required, so its keys without a match are in the result")
    } else if (required.forall(isHinted(join, _)) && i == largest) {
      Some("all required inputs have the hint, and it is the largest of them")
    } else if (join.indicator.isDefined) {
      Some("the indicator needs all inputs in one operator")
    } else if (!join.hasExactKeys) {
      Some("keys that are equal may differ, as -0.0 and 0.0")
    } else if (conf.getConf(SkewConf.MULTI_JOIN_ORDER) == MultiFullJoinExec.Natural.name) {
      Some(s"${SkewConf.MULTI_JOIN_ORDER.key} is ${MultiFullJoinExec.Natural.name}")
    } else {
      None
    }
  }
}
