package org.apache.spark.sql.skewext

import org.apache.spark.SparkEnv
import org.apache.spark.shuffle.ShuffleManager
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Code that Spark 4.3 has changed. */
private[skewext] trait Until42Shims {

  def dynamicPruning(
      pruned: Expression,
      build: LogicalPlan,
      buildKeys: Seq[Expression],
      key: Int,
      onlyInBroadcast: Boolean): Expression =
    DynamicPruningSubquery(pruned, build, buildKeys, Seq(key), onlyInBroadcast)

  def shuffleManager(env: SparkEnv): ShuffleManager = env.shuffleManager
}
