package org.apache.spark.sql.skewext

import scala.annotation.unused

import org.apache.spark.SparkEnv
import org.apache.spark.shuffle.ShuffleManager
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, EvalMode, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{EmptyRelationExec, ExternalAppendOnlyUnsafeRowArray, LeafExecNode}
import org.apache.spark.sql.types.DataType

/** Code of Spark 4.0 that later lines have changed. */
private[skewext] trait LineShims {

  def dynamicPruning(
      pruned: Expression,
      build: LogicalPlan,
      buildKeys: Seq[Expression],
      key: Int,
      onlyInBroadcast: Boolean): Expression =
    DynamicPruningSubquery(pruned, build, buildKeys, Seq(key), onlyInBroadcast)

  def shuffleManager(env: SparkEnv): ShuffleManager = env.shuffleManager

  /** Whether values are times of day. Spark 4.0 has none. */
  def isTime(@unused dataType: DataType): Boolean = false

  /** Whether the node holds its rows: a query without FROM is an RDD of one row. */
  def hasFixedRows(leaf: LeafExecNode): Boolean = leaf match {
    case _: EmptyRelationExec => true
    case _ => leaf.nodeName == "Scan OneRowRelation"
  }

  /** Whether a column has the number of each row's partition: `repartitionById` does not exist yet. */
  def isPartitionId(@unused partitioning: Partitioning): Boolean = false

  def evalMode(sum: Sum): EvalMode.Value = sum.evalMode

  /** There is no other threshold for spilling than the first one: memory decides. */
  def rowArray(rowsInMemory: Int): ExternalAppendOnlyUnsafeRowArray =
    new ExternalAppendOnlyUnsafeRowArray(rowsInMemory, Int.MaxValue)
}
