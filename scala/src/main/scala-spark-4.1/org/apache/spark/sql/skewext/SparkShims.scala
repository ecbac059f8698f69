package org.apache.spark.sql.skewext

import org.apache.spark.internal.config.{SHUFFLE_SPILL_MAX_SIZE_FORCE_SPILL_THRESHOLD, SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD}
import org.apache.spark.util.collection.unsafe.sort.{PrefixComparators, RecordComparator, UnsafeExternalSorter}
import org.apache.spark.{SparkEnv, TaskContext}

/** Code that differs between lines of Spark. Each line has its own object. */
object SparkShims extends Spark4Shims with Since41Shims with Until42Shims {

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
      env.conf.get(SHUFFLE_SPILL_MAX_SIZE_FORCE_SPILL_THRESHOLD),
      /* canUseRadixSort */ order.isEmpty)
  }
}
