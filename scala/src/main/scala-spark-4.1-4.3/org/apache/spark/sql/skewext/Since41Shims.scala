package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.EvalMode
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.execution.ExternalAppendOnlyUnsafeRowArray
import org.apache.spark.sql.types.{DataType, TimeType}

/** Code that differs between Spark 4.0 and later lines. */
private[skewext] trait Since41Shims {

  /** Whether values are times of day, which are stored as longs. */
  def isTime(dataType: DataType): Boolean = dataType.isInstanceOf[TimeType]

  def evalMode(sum: Sum): EvalMode.Value = sum.evalContext.evalMode

  /** There is no other threshold than the first one: memory decides. */
  def rowArray(rowsInMemory: Int): ExternalAppendOnlyUnsafeRowArray =
    new ExternalAppendOnlyUnsafeRowArray(rowsInMemory, Long.MaxValue, Int.MaxValue, Long.MaxValue)
}
