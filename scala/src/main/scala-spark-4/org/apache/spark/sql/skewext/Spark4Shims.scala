package org.apache.spark.sql.skewext

import scala.collection.JavaConverters._

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.catalyst.expressions.{CollationKey, EvalMode, Expression, FunctionTableSubqueryArgumentExpression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.execution.ExternalAppendOnlyUnsafeRowArray
import org.apache.spark.sql.types.{DataType, TimeType}
import org.apache.spark.sql.{classic, Column, DataFrame, SparkSession}
import org.apache.spark.unsafe.types.UTF8String

/** What is written differently for Spark 3.5 and for the lines of Spark 4. */
private[skewext] trait Spark4Shims extends LineShims {

  /** What a page of Spark's UI is asked by. */
  type HttpRequest = HttpServletRequest

  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame =
    classic.Dataset.ofRows(session.asInstanceOf[classic.SparkSession], plan)

  def expression(column: Column): Expression =
    classic.ColumnNodeToExpressionConverter(column.node)

  /** Whether it has strings that are equal though their bytes are not. */
  def hasCollation(dataType: DataType): Boolean = !UnsafeRowUtils.isBinaryStable(dataType)

  /** What Spark's own joins compare in place of a string with a collation: bytes. */
  def collationKey(string: Expression): Expression = CollationKey(string)

  /** In the order of the bytes; `compareTo` fails in Spark's tests, as collations have another one. */
  def compare(left: UTF8String, right: UTF8String): Int = left.binaryCompare(right)

  /** Whether values are times of day, which are longs. */
  def isTime(dataType: DataType): Boolean = dataType.isInstanceOf[TimeType]

  /** Whether it is null as soon as a child is. */
  def isNullIntolerant(e: Expression): Boolean = e.nullIntolerant

  def evalMode(sum: Sum): EvalMode.Value = sum.evalContext.evalMode

  /** Whether rows of a table argument are wanted by key or in an order. */
  def isArranged(table: FunctionTableSubqueryArgumentExpression): Boolean =
    table.hasRepartitioning || table.orderByExpressions.nonEmpty

  def outOfMemory(message: String): SparkOutOfMemoryError =
    new SparkOutOfMemoryError("INTERNAL_ERROR_MEMORY", Map("message" -> message).asJava)

  /** No threshold besides the first one: memory decides. */
  def rowArray(rowsInMemory: Int): ExternalAppendOnlyUnsafeRowArray =
    new ExternalAppendOnlyUnsafeRowArray(rowsInMemory, Long.MaxValue, Int.MaxValue, Long.MaxValue)
}
