package io.github.skewext.platform

import scala.annotation.unused

import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.{PlanChangeLogger, Rule}
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, TreePattern}
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * Several rules that Spark runs as one. For each run of a rule Spark compares plans and records
 * metrics, which takes longer than a search of the plan for nodes that concern skewext. The group
 * runs this search once, before all its rules. A query without a join pays only for that.
 *
 * The tracker of the query and the log of plan changes show the individual rules by their own
 * names. Each rule has its own guard. The settings that leave rules out are read once for all rules.
 */
abstract class RuleGroup[P <: QueryPlan[P]](rules: Seq[Rule[P]]) extends Rule[P] {

  /** The names of the rules, in their order. */
  private[skewext] val names: Seq[String] = rules.map(_.ruleName)

  /** Whether the plan contains a node to which one of the rules may apply. */
  protected def concerns(plan: P): Boolean

  /** The names of rules that change nothing but nodes of skewext. */
  protected def onlyForOwnNodes: Set[String] = Set.empty

  protected def hasOwnNodes(@unused plan: P): Boolean = true

  /** The names of the rules that the session excludes. */
  protected def excluded: Seq[String] = Nil

  override def apply(plan: P): P = Guard.protect(s"the rule $ruleName", plan) {
    if (concerns(plan)) {
      val active = ActiveRules.in(conf, excluded)
      var hasOwn = hasOwnNodes(plan)
      rules.foldLeft(plan) { (before, rule) =>
        val applies = hasOwn || !onlyForOwnNodes.contains(rule.ruleName)
        val after = if (applies && active.include(rule)) run(rule, before) else before
        if (!hasOwn && (after ne before)) hasOwn = hasOwnNodes(after)
        after
      }
    } else {
      plan
    }
  }

  private def run(rule: Rule[P], plan: P): P = {
    val began = System.nanoTime()
    val result = Guard.protect(s"the rule ${rule.ruleName}", plan)(rule(plan))
    val took = System.nanoTime() - began
    // A comparison of the plans would take longer than most rules.
    val isEffective = result ne plan
    QueryPlanningTracker.get.foreach(_.recordRuleInvocation(rule.ruleName, took, isEffective))
    if (isEffective) new PlanChangeLogger[P]().logRule(rule.ruleName, plan, result)
    result
  }
}

/**
 * The name of a rule in a setting that excludes rules: with its package, or `SpreadNullKeys` alone.
 */
private[skewext] object RuleName {

  def isIn(given: Iterable[String], ruleName: String): Boolean = given.nonEmpty && {
    val simple = ruleName.substring(ruleName.lastIndexOf('.') + 1)
    given.exists(each => each == ruleName || each == simple)
  }

  /** Whether a rule is off: by its name in a setting, or because its classes do not fit this Spark. */
  def isOff(given: Iterable[String], ruleName: String): Boolean =
    isIn(given, ruleName) || Linkage.faultOf(ruleName).isDefined
}

/**
 * Runs a rule after exchanges are planned, in plans without adaptive execution. No other extension
 * point does that.
 */
case class NonAdaptiveRules(override val preColumnarTransitions: Rule[SparkPlan])
    extends ColumnarRule

/**
 * Rules of the optimizer, for plans with joins of Spark or skewext. Both have the tree pattern
 * `JOIN`.
 *
 * @param alsoFor other tree patterns of plans that concern the rules.
 */
class LogicalJoinRules(
    rules: Seq[Rule[LogicalPlan]],
    ofOwnNodes: Seq[Rule[LogicalPlan]],
    alsoFor: Seq[TreePattern] = Nil)
    extends RuleGroup[LogicalPlan](rules) {

  override protected val onlyForOwnNodes: Set[String] = ofOwnNodes.map(_.ruleName).toSet

  override protected def hasOwnNodes(plan: LogicalPlan): Boolean =
    plan.containsPattern(JOIN) &&
      (plan.isInstanceOf[OwnNode] || plan.children.exists(hasOwnNodes))

  override protected def concerns(plan: LogicalPlan): Boolean = plan match {
    // Its query is not one of its children.
    case save: SaveIntoDataSourceCommand => save.query.containsPattern(JOIN)
    case _ => plan.containsPattern(JOIN) || plan.containsAnyPattern(alsoFor: _*)
  }

  override protected def excluded: Seq[String] = LogicalJoinRules.excluded(conf)
}

private[skewext] object LogicalJoinRules {

  /** The rules that the session excludes. Spark checks only the name of the group. */
  def excluded(conf: SQLConf): Seq[String] =
    conf.optimizerExcludedRules.toSeq.flatMap(_.split(',')).map(_.trim)
}
