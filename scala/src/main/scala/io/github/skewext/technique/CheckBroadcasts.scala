package io.github.skewext.technique

import io.github.skewext.execution.{BroadcastLimit, MarkedBroadcastJoinExec}
import io.github.skewext.internal.SkewConf

import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec

/**
 * Stops a query whose broadcast side turns out to be too large, when the driver has built it and
 * before any executor has fetched it. Of a DataFrame that is not read from files Spark knows no size
 * beforehand, and of filtered or compressed ones a wrong one.
 *
 * Only of a technique that was asked for by its name: what `auto` chooses fails no query that Spark would
 * run.
 *
 * It runs as often as adaptive execution plans the rest of a query. It is the one rule that is meant to
 * throw, so it is not guarded.
 */
object CheckBroadcasts extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    if (SkewConf.enabled(conf) && !SkewConf.excludes(conf, ruleName)) {
      plan.foreach {
        case join: BroadcastHashJoinExec if join.buildSide == BuildLeft =>
          BroadcastLimit.check(join, join.left)
        case join: BroadcastHashJoinExec => BroadcastLimit.check(join, join.right)
        case join: MarkedBroadcastJoinExec => BroadcastLimit.check(join, join.small)
        case _ =>
      }
    }
    plan
  }
}
