package io.github.skewext.platform

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, TreePattern}
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand
import org.apache.spark.sql.internal.SQLConf

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
