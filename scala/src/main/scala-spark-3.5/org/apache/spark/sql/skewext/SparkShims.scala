package org.apache.spark.sql.skewext

import java.util.function.Supplier
import javax.servlet.http.HttpServletRequest

import scala.annotation.unused

import org.apache.spark.internal.config.SHUFFLE_SPILL_NUM_ELEMENTS_FORCE_SPILL_THRESHOLD
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.shuffle.ShuffleManager
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, EvalMode, Expression, FunctionTableSubqueryArgumentExpression, NullIntolerant}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MapInPandas, PythonMapInArrow}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.execution.python.{MapInPandasExec, PythonMapInArrowExec}
import org.apache.spark.sql.execution.{ExternalAppendOnlyUnsafeRowArray, LeafExecNode, SparkPlan}
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.{Column, DataFrame, Dataset, SparkSession}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.collection.unsafe.sort.{PrefixComparator, RecordComparator, UnsafeExternalSorter}
import org.apache.spark.{SparkEnv, TaskContext}

/** Code that differs between lines of Spark. Each line has its own object. */
object SparkShims {

  /** The type of a request for a page of Spark's UI. */
  type HttpRequest = HttpServletRequest

  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)

  def expression(column: Column): Expression = column.expr

  /** Whether a type has strings that are equal with different bytes. Spark 3.5 has none. */
  def hasCollation(@unused dataType: DataType): Boolean = false

  def collationKey(string: Expression): Expression = string

  /** Compares strings by their bytes. */
  def compare(left: UTF8String, right: UTF8String): Int = left.compareTo(right)

  /** Whether values are times of day. Spark 3.5 has none. */
  def isTime(@unused dataType: DataType): Boolean = false

  /** Whether an expression is null if one of its children is. */
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

  /** Whether a table argument is partitioned or ordered. Spark 3.5 has no syntax for it. */
  def isArranged(@unused table: FunctionTableSubqueryArgumentExpression): Boolean = false

  /** Whether the node holds its rows: a query without FROM is an RDD of one row. */
  def hasFixedRows(leaf: LeafExecNode): Boolean = leaf.nodeName == "Scan OneRowRelation"

  /** Whether a column has the number of each row's partition: `repartitionById` does not exist yet. */
  def isPartitionId(@unused partitioning: Partitioning): Boolean = false

  /** Whether the plan is a join whose partitions Spark has split. */
  def isSkewJoin(plan: SparkPlan): Boolean = plan match {
    case join: ShuffledJoin => join.isSkewJoin
    case _ => false
  }

  /** Whether all tasks of its stage must run at the same time. */
  def isBarrier(plan: SparkPlan): Boolean = plan match {
    case map: MapInPandasExec => map.isBarrier
    case map: PythonMapInArrowExec => map.isBarrier
    case _ => false
  }

  def isBarrier(plan: LogicalPlan): Boolean = plan match {
    case map: MapInPandas => map.isBarrier
    case map: PythonMapInArrow => map.isBarrier
    case _ => false
  }

  def outOfMemory(message: String): SparkOutOfMemoryError = new SparkOutOfMemoryError(message)

  /** There is no other threshold for spilling than the first one: memory decides. */
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
