package org.apache.spark.sql.skewext

import org.apache.spark.SparkEnv
import org.apache.spark.shuffle.ShuffleManager
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.physical.KeyedPartitioning

/** Code that differs between lines of Spark. Each line has its own object. */
object SparkShims extends Spark4Shims with Since41Shims with Since42Shims {

  def dynamicPruning(
      pruned: Expression,
      build: LogicalPlan,
      buildKeys: Seq[Expression],
      key: Int,
      onlyInBroadcast: Boolean): Expression =
    DynamicPruningSubquery(pruned, build, buildKeys, Seq(key), onlyInBroadcast)()

  /** Whether each partition has the rows of the value that is given for it. */
  def hasValues(partitioning: KeyedPartitioning): Boolean =
    !partitioning.mayContainUnknownPartitionKeys && !partitioning.isCollapsed

  /** The shuffle manager of batch queries. Stages that run at the same time have another one. */
  def shuffleManager(env: SparkEnv): ShuffleManager = env.blockingShuffleManager
}
