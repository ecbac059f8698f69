package org.apache.spark.sql.skewext

import org.apache.spark.SparkEnv
import org.apache.spark.shuffle.ShuffleManager
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** What is written differently from Spark 4.3 on. */
private[skewext] trait LineShims {

  def dynamicPruning(
      pruned: Expression,
      build: LogicalPlan,
      buildKeys: Seq[Expression],
      key: Int,
      onlyInBroadcast: Boolean): Expression =
    DynamicPruningSubquery(pruned, build, buildKeys, Seq(key), onlyInBroadcast)()

  /** That of batch queries; there is another one for stages that run at the same time. */
  def shuffleManager(env: SparkEnv): ShuffleManager = env.blockingShuffleManager
}
