package io.github.skewext.technique

import io.github.skewext.SkewConf

import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, ReusedExchangeExec}
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.skewext.SqlInternals

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
    if (SkewConf.enabled(conf)) {
      plan.foreach {
        case join: BroadcastHashJoinExec if join.buildSide == BuildLeft => check(join, join.left)
        case join: BroadcastHashJoinExec => check(join, join.right)
        case join: MarkedBroadcastJoinExec => check(join, join.small)
        case _ =>
      }
    }
    plan
  }

  /** Whether what a technique has broadcast, if it has been built, may go to the executors. */
  def check(join: SparkPlan, broadcast: SparkPlan): Unit = for {
    technique <- join.logicalLink.flatMap(TechniqueHint.of(_)).collect {
      case TechniqueHint.Made(technique, options, _) if !options.ofAuto => technique
    }
    bytes <- sizeOf(broadcast)
    limit = BroadcastSide.maxBytes(join.session) if bytes > limit
  } throw SqlInternals.analysisError(
    s"skew_join by $technique has built a broadcast of ${BroadcastSide.size(bytes)}, which is larger " +
      s"than ${BroadcastSide.size(limit)}: take a technique that broadcasts less, or allow more by " +
      s"${SkewConf.SKEW_JOIN_MAX_BROADCAST.key}.")

  /** What the broadcast takes in memory, if it has been built. */
  private def sizeOf(broadcast: SparkPlan): Option[BigInt] = broadcast match {
    case stage: BroadcastQueryStageExec if stage.isMaterialized =>
      Some(stage.getRuntimeStatistics.sizeInBytes)
    // None yet, if it has not been built.
    case exchange: BroadcastExchangeLike => Some(exchange.runtimeStatistics.sizeInBytes)
    case reused: ReusedExchangeExec => sizeOf(reused.child)
    case _ => None
  }
}
