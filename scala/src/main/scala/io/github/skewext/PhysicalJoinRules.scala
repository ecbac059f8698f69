package io.github.skewext

import io.github.skewext.execution.{MultiJoinExec, SparksShuffledJoin}

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan

/** Rules for physical plans with shuffled joins of Spark or skewext. */
class PhysicalJoinRules(rules: Rule[SparkPlan]*) extends RuleGroup[SparkPlan](rules) {

  override protected def concerns(plan: SparkPlan): Boolean = plan.exists {
    case _: MultiJoinExec | SparksShuffledJoin(_) => true
    case _ => false
  }
}
