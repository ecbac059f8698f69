package org.apache.spark.sql.skewext

import scala.collection.JavaConverters._

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.expressions.{CollationKey, Expression, FunctionTableSubqueryArgumentExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MapInArrow, MapInPandas}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.execution.adaptive.ExchangeQueryStageExec
import org.apache.spark.sql.execution.python.{MapInArrowExec, MapInPandasExec}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.types.{DataType, StringType}
import org.apache.spark.sql.{Column, DataFrame, SparkSession, SparkSessionExtensions, classic}
import org.apache.spark.unsafe.types.UTF8String

/** Code that differs between Spark 3.5 and the lines of Spark 4. */
private[skewext] trait Spark4Shims {

  /** Adds a rule that runs before Spark resolves the parameters of hints. */
  def injectHintRule(
      extensions: SparkSessionExtensions,
      rule: SparkSession => Rule[LogicalPlan]): Unit =
    extensions.injectHintResolutionRule(rule(_))

  /** The type of a request for a page of Spark's UI. */
  type HttpRequest = HttpServletRequest

  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame =
    classic.Dataset.ofRows(session.asInstanceOf[classic.SparkSession], plan)

  def expression(column: Column): Expression =
    classic.ColumnNodeToExpressionConverter(column.node)

  /** The operators that Spark's own strategy plans for a join. */
  def joinSelection(join: LogicalPlan): Seq[SparkPlan] =
    classic.SparkSession.active.sessionState.planner.JoinSelection(join)

  /** Whether a type has strings that are equal with different bytes. */
  def hasCollation(dataType: DataType): Boolean = !UnsafeRowUtils.isBinaryStable(dataType)

  /** Whether ALTER TABLE can give strings of a column another collation. */
  def canChangeCollation(dataType: DataType): Boolean =
    dataType.existsRecursively(_.isInstanceOf[StringType])

  /** The bytes that Spark's own joins compare in place of a string with a collation. */
  def collationKey(string: Expression): Expression = CollationKey(string)

  /**
   * Compares strings by their bytes. `compareTo` fails in Spark's tests, because collations have
   * another order.
   */
  def compare(left: UTF8String, right: UTF8String): Int = left.binaryCompare(right)

  /** Whether an expression is null if one of its children is. */
  def isNullIntolerant(e: Expression): Boolean = e.nullIntolerant

  /** Cancels the jobs of a stage that is not done. */
  def cancel(stage: ExchangeQueryStageExec, reason: String): Unit = stage.cancel(reason)

  /** Whether a table argument is partitioned or ordered. */
  def isArranged(table: FunctionTableSubqueryArgumentExpression): Boolean =
    table.hasRepartitioning || table.orderByExpressions.nonEmpty

  /** Whether all tasks of its stage must run at the same time. */
  def isBarrier(plan: SparkPlan): Boolean = plan match {
    case map: MapInPandasExec => map.isBarrier
    case map: MapInArrowExec => map.isBarrier
    case _ => false
  }

  def isBarrier(plan: LogicalPlan): Boolean = plan match {
    case map: MapInPandas => map.isBarrier
    case map: MapInArrow => map.isBarrier
    case _ => false
  }

  def outOfMemory(message: String): SparkOutOfMemoryError =
    new SparkOutOfMemoryError("INTERNAL_ERROR_MEMORY", Map("message" -> message).asJava)
}
