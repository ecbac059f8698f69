package org.apache.spark.sql.skewext

import org.apache.spark.internal.config.SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.util.collection.unsafe.sort.{PrefixComparator, RecordComparator, UnsafeExternalSorter}
import org.apache.spark.{SparkEnv, TaskContext}

/** Code that differs between lines of Spark. Each line has its own object. */
object SparkShims extends Spark4Shims {

  /** Whether the plan is a join whose partitions Spark has split. */
  def isSkewJoin(plan: SparkPlan): Boolean = plan match {
    case join: ShuffledJoin => join.isSkewJoin
    case _ => false
  }

  def sorter(
      context: TaskContext,
      comparator: RecordComparator,
      prefixes: PrefixComparator,
      initialRecords: Int,
      pageSize: Long): UnsafeExternalSorter = {
    val env = SparkEnv.get
    UnsafeExternalSorter.create(
      context.taskMemoryManager(),
      env.blockManager,
      env.serializerManager,
      context,
      () => comparator,
      prefixes,
      initialRecords,
      pageSize,
      env.conf.get(SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD),
      /* canUseRadixSort */ true)
  }
}
