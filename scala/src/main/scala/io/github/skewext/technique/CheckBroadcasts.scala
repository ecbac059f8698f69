package io.github.skewext.technique

import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.ExchangeQueryStageExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.skewext.SqlInternals

/**
 * Fails a query whose broadcast side is too large, after the driver has built it and before an
 * executor fetches it. Spark's estimate is missing for a DataFrame that is not read from files, and
 * wrong for filtered or compressed data.
 *
 * The check applies only to a technique that the query names. The choice of `auto` never fails a
 * query that Spark would run.
 *
 * The rule runs each time adaptive execution plans the rest of a query. It is the only rule that
 * may throw, so it is not guarded. It fails the stages first: Spark would wait for ever for those
 * that still run, or take all that are done, if the same plan is executed again.
 */
object CheckBroadcasts extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    if (SkewConf.enabled(conf) && !SkewConf.excludes(conf, ruleName)) {
      try check(plan)
      catch {
        case e: AnalysisException =>
          plan.foreach {
            case stage: ExchangeQueryStageExec => SqlInternals.failStage(stage, e)
            case _ =>
          }
          throw e
      }
    }
    plan
  }

  private def check(plan: SparkPlan): Unit = plan.foreach {
    case join: BroadcastHashJoinExec if join.buildSide == BuildLeft =>
      BroadcastLimit.check(join, join.left)
    case join: BroadcastHashJoinExec => BroadcastLimit.check(join, join.right)
    case join: MarkedBroadcastJoinExec => BroadcastLimit.check(join, join.small)
    case _ =>
  }
}
