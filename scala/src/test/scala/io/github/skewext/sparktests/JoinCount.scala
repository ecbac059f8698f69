package io.github.skewext.sparktests

import java.util.concurrent.atomic.AtomicLong

import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.join.probe.BuildProbeJoinExec

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}

/** Counts the joins of ours in physical plans: without it nobody knew whether any was made. */
object JoinCount extends Rule[SparkPlan] {

  private val counted = new AtomicLong

  def value: Long = counted.get

  override def apply(plan: SparkPlan): SparkPlan = {
    plan.foreach {
      case _: MultiFullJoinExec | _: BuildProbeJoinExec => counted.incrementAndGet()
      case _ =>
    }
    plan
  }
}

/** Registered after skewext's own extension, so that the rule runs after its rules. */
class JoinCountExtension extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = extensions.injectColumnar { _ =>
    new ColumnarRule {
      override def preColumnarTransitions: Rule[SparkPlan] = JoinCount
    }
  }
}
