package io.github.skewext.sparktests

import java.util.concurrent.atomic.AtomicLong

import io.github.skewext.join.MultiFullJoin

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/** Counts the multi-way joins in optimized plans: without it nobody knew whether any was made. */
object MultiJoinCount extends Rule[LogicalPlan] {

  private val counted = new AtomicLong

  def value: Long = counted.get

  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan.foreach {
      case _: MultiFullJoin => counted.incrementAndGet()
      case _ =>
    }
    plan
  }
}

/** Registered after skewext's own extension, so that the rule runs after its rules. */
class MultiJoinCountExtension extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectPreCBORule(_ => MultiJoinCount)
}
