package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.EvalMode
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, ShufflePartitionIdPassThrough}
import org.apache.spark.sql.execution.{EmptyRelationExec, ExternalAppendOnlyUnsafeRowArray, LeafExecNode, OneRowRelationExec}
import org.apache.spark.sql.types.{DataType, TimeType}

/** Code that differs between Spark 4.0 and later lines. */
private[skewext] trait Since41Shims {

  /** Whether values are times of day, which are stored as longs. */
  def isTime(dataType: DataType): Boolean = dataType.isInstanceOf[TimeType]

  /** Whether the node holds its rows: that of a query without FROM, and one that was found empty. */
  def hasFixedRows(leaf: LeafExecNode): Boolean = leaf match {
    case _: OneRowRelationExec | _: EmptyRelationExec => true
    case _ => false
  }

  /** Whether a column has the number of each row's partition: `repartitionById`. */
  def isPartitionId(partitioning: Partitioning): Boolean =
    partitioning.isInstanceOf[ShufflePartitionIdPassThrough]

  def evalMode(sum: Sum): EvalMode.Value = sum.evalContext.evalMode

  /** There is no other threshold than the first one: memory decides. */
  def rowArray(rowsInMemory: Int): ExternalAppendOnlyUnsafeRowArray =
    new ExternalAppendOnlyUnsafeRowArray(rowsInMemory, Long.MaxValue, Int.MaxValue, Long.MaxValue)
}
