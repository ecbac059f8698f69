package io.github.skewext

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand

/** Rules of the optimizer, for plans with joins of any kind: ours have the tree pattern of Spark's. */
class LogicalJoinRules(rules: Rule[LogicalPlan]*) extends RuleGroup[LogicalPlan](rules) {

  override protected def concerns(plan: LogicalPlan): Boolean = plan match {
    // To Spark its query is none of its children.
    case save: SaveIntoDataSourceCommand => save.query.containsPattern(JOIN)
    case _ => plan.containsPattern(JOIN)
  }

  /** Spark leaves out rules by their names, and sees that of the group. */
  override protected def excluded: Set[String] =
    conf.optimizerExcludedRules.toSeq.flatMap(_.split(',')).map(_.trim).toSet
}
