package org.apache.spark.sql.skewext

import scala.annotation.unused

import org.apache.spark.internal.config.SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD
import org.apache.spark.sql.catalyst.expressions.EvalMode
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.execution.ExternalAppendOnlyUnsafeRowArray
import org.apache.spark.sql.types.DataType
import org.apache.spark.util.collection.unsafe.sort.{PrefixComparators, RecordComparator, UnsafeExternalSorter}
import org.apache.spark.{SparkEnv, TaskContext}

/** Code that Spark 4.1 has changed. */
private[skewext] trait Until40Shims {

  /** Whether values are times of day. There are none yet. */
  def isTime(@unused dataType: DataType): Boolean = false

  def evalMode(sum: Sum): EvalMode.Value = sum.evalMode

  /** There is no other threshold for spilling than the first one: memory decides. */
  def rowArray(rowsInMemory: Int): ExternalAppendOnlyUnsafeRowArray =
    new ExternalAppendOnlyUnsafeRowArray(rowsInMemory, Int.MaxValue)

  /** Sorts records by their 64-bit prefix, and those of one prefix in an order, if there is one. */
  def prefixSorter(
      context: TaskContext,
      pageSize: Long,
      order: Option[RecordComparator]): UnsafeExternalSorter = {
    val env = SparkEnv.get
    UnsafeExternalSorter.create(
      context.taskMemoryManager(),
      env.blockManager,
      env.serializerManager,
      context,
      () => order.getOrElse(TaskInternals.AnyOrder),
      PrefixComparators.LONG,
      TaskInternals.InitialRecords,
      pageSize,
      env.conf.get(SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD),
      /* canUseRadixSort */ order.isEmpty)
  }
}
