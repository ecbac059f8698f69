package org.apache.spark.sql.skewext

import java.util.function.Supplier
import javax.servlet.http.HttpServletRequest

import scala.annotation.unused

import org.apache.spark.internal.config.SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.shuffle.ShuffleManager
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, EvalMode, Expression, FunctionTableSubqueryArgumentExpression, NullIntolerant}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.execution.{ExternalAppendOnlyUnsafeRowArray, SparkPlan}
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.{Column, DataFrame, Dataset, SparkSession}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.collection.unsafe.sort.{PrefixComparator, RecordComparator, UnsafeExternalSorter}
import org.apache.spark.{SparkEnv, TaskContext}

/** What is written differently for each line of Spark: there is one such object for each. */
object SparkShims {

  /** What a page of Spark's UI is asked by. */
  type HttpRequest = HttpServletRequest

  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)

  def expression(column: Column): Expression = column.expr

  /** Whether it has strings that are equal though their bytes are not: there are none yet. */
  def hasCollation(@unused dataType: DataType): Boolean = false

  def collationKey(string: Expression): Expression = string

  /** In the order of the bytes. */
  def compare(left: UTF8String, right: UTF8String): Int = left.compareTo(right)

  /** Whether values are times of day: there are none yet. */
  def isTime(@unused dataType: DataType): Boolean = false

  /** Whether it is null as soon as a child is. */
  def isNullIntolerant(e: Expression): Boolean = e.isInstanceOf[NullIntolerant]

  def evalMode(sum: Sum): EvalMode.Value = sum.evalMode

  def shuffleManager(env: SparkEnv): ShuffleManager = env.shuffleManager

  def dynamicPruning(
      pruned: Expression,
      build: LogicalPlan,
      buildKeys: Seq[Expression],
      key: Int,
      onlyInBroadcast: Boolean): Expression =
    DynamicPruningSubquery(pruned, build, buildKeys, key, onlyInBroadcast)

  /** Whether rows of a table argument are wanted by key or in an order: there is no such syntax yet. */
  def isArranged(@unused table: FunctionTableSubqueryArgumentExpression): Boolean = false

  /** Whether it is a join of which Spark has split partitions. */
  def isSkewJoin(plan: SparkPlan): Boolean = plan match {
    case join: ShuffledJoin => join.isSkewJoin
    case _ => false
  }

  def outOfMemory(message: String): SparkOutOfMemoryError = new SparkOutOfMemoryError(message)

  /** No threshold for spilling besides the first one: memory decides. */
  def rowArray(rowsInMemory: Int): ExternalAppendOnlyUnsafeRowArray =
    new ExternalAppendOnlyUnsafeRowArray(rowsInMemory, Int.MaxValue)

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
      new Supplier[RecordComparator] {
        override def get(): RecordComparator = comparator
      },
      prefixes,
      initialRecords,
      pageSize,
      env.conf.get(SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD),
      /* canUseRadixSort */ true)
  }
}
