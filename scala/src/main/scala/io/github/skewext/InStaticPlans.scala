package io.github.skewext

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}

/** Where plans are not adaptive, this is the one place for rules after exchanges are planned. */
case class InStaticPlans(override val preColumnarTransitions: Rule[SparkPlan]) extends ColumnarRule
