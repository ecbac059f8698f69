package io.github.skewext.join

import io.github.skewext.facts.BuiltinShuffledJoin
import io.github.skewext.platform.RuleGroup
import io.github.skewext.shuffle.ReadsBulkRows

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan

/** Rules for physical plans with shuffled joins of Spark or skewext. */
class PhysicalJoinRules(rules: Rule[SparkPlan]*) extends RuleGroup[SparkPlan](rules) {

  override protected def concerns(plan: SparkPlan): Boolean = plan.exists {
    case _: ReadsBulkRows | BuiltinShuffledJoin(_) => true
    case _ => false
  }
}
