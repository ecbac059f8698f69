package io.github.skewext.platform

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}

/**
 * Runs a rule after exchanges are planned, in plans without adaptive execution. No other extension
 * point does that.
 */
case class NonAdaptiveRules(override val preColumnarTransitions: Rule[SparkPlan])
    extends ColumnarRule
