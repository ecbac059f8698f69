package io.github.skewext.technique

import io.github.skewext.SkewConf

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.skewext.SqlInternals

/**
 * Stops a query whose broadcast side turns out to be too large, when the driver has built it and
 * before any executor has fetched it. Of a DataFrame that is not read from files Spark knows no size
 * beforehand, and of filtered or compressed ones a wrong one.
 *
 * It runs as often as adaptive execution plans the rest of a query. It is the one rule that is meant to
 * throw, so it is not guarded.
 */
object CheckBroadcasts extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    if (SkewConf.enabled(conf)) {
      plan.foreach {
        case join: BroadcastHashJoinExec => check(join)
        case _ =>
      }
    }
    plan
  }

  private def check(join: BroadcastHashJoinExec): Unit = for {
    technique <- join.logicalLink.collect { case j: Join => j }.flatMap(TechniqueHint.of).collect {
      case TechniqueHint.Made(technique, _, _) => technique
    }
    bytes <- sizeOf(join, join.buildSide)
    limit = BroadcastSide.maxBytes(join.session) if bytes > limit
  } throw SqlInternals.analysisError(
    s"skew_join by $technique has built a broadcast of ${BroadcastSide.size(bytes)}, which is larger " +
      s"than ${BroadcastSide.size(limit)}: take a technique that broadcasts less, or allow more by " +
      s"${SkewConf.SKEW_JOIN_MAX_BROADCAST.key}.")

  /** What the broadcast takes in memory, if it has been built. */
  private def sizeOf(join: BroadcastHashJoinExec, side: BuildSide): Option[BigInt] =
    (if (side == BuildLeft) join.left else join.right) match {
      case stage: BroadcastQueryStageExec if stage.isMaterialized =>
        Some(stage.getRuntimeStatistics.sizeInBytes)
      case _ => None
    }
}
