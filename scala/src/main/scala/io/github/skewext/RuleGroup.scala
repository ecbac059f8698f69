package io.github.skewext

import io.github.skewext.internal.{Guard, GuardedRule}

import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.rules.{PlanChangeLogger, Rule}

/**
 * Several rules that are one to Spark. For each run of each rule Spark compares plans and keeps books,
 * which takes longer than a look at a plan that has nothing for us. So the group looks once, in front
 * of all its rules, and a query without a join pays for that alone.
 *
 * The rules that run, and what they change, are known to the query's tracker and to the log of plan
 * changes by their own names, as they would be without the group. Each is guarded by itself.
 */
abstract class RuleGroup[P <: QueryPlan[P]](rules: Seq[Rule[P]]) extends Rule[P] {

  private val guarded = rules.map(GuardedRule(_))

  /** The rules' names, in their order. */
  private[skewext] val names: Seq[String] = rules.map(_.ruleName)

  /** Whether there can be anything in the plan for one of the rules. */
  protected def concerns(plan: P): Boolean

  /** The names of rules that the session does not want. */
  protected def excluded: Set[String] = Set.empty

  override def apply(plan: P): P = Guard.protect(s"the rule $ruleName", plan) {
    if (concerns(plan)) {
      val unwanted = excluded
      guarded.foldLeft(plan) { (before, rule) =>
        if (unwanted.contains(rule.ruleName)) before else run(rule, before)
      }
    } else {
      plan
    }
  }

  private def run(rule: Rule[P], plan: P): P = {
    val began = System.nanoTime()
    val result = rule(plan)
    val took = System.nanoTime() - began
    val isEffective = !result.fastEquals(plan)
    QueryPlanningTracker.get.foreach(_.recordRuleInvocation(rule.ruleName, took, isEffective))
    if (isEffective) new PlanChangeLogger[P]().logRule(rule.ruleName, plan, result)
    result
  }
}
