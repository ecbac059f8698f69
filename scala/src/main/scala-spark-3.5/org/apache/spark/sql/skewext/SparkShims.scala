package org.apache.spark.sql.skewext

import javax.servlet.http.HttpServletRequest

import scala.annotation.unused

import org.apache.spark.SparkEnv
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.shuffle.ShuffleManager
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression, FunctionTableSubqueryArgumentExpression, NullIntolerant}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MapInPandas, PythonMapInArrow}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.ExchangeQueryStageExec
import org.apache.spark.sql.execution.python.{MapInPandasExec, PythonMapInArrowExec}
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.{Column, DataFrame, Dataset, SparkSession, SparkSessionExtensions}
import org.apache.spark.unsafe.types.UTF8String

/** Code that differs between lines of Spark. Each line has its own object. */
object SparkShims extends Until40Shims {

  /** Adds a rule that runs before Spark resolves the parameters of hints. Spark 3.5 has none. */
  def injectHintRule(
      @unused extensions: SparkSessionExtensions,
      @unused rule: SparkSession => Rule[LogicalPlan]): Unit = ()

  /** The type of a request for a page of Spark's UI. */
  type HttpRequest = HttpServletRequest

  def dataFrame(session: SparkSession, plan: LogicalPlan): DataFrame = Dataset.ofRows(session, plan)

  def expression(column: Column): Expression = column.expr

  /** The operators that Spark's own strategy plans for a join. */
  def joinSelection(join: LogicalPlan): Seq[SparkPlan] =
    SparkSession.active.sessionState.planner.JoinSelection(join)

  /** Whether a type has strings that are equal with different bytes. Spark 3.5 has none. */
  def hasCollation(@unused dataType: DataType): Boolean = false

  def canChangeCollation(@unused dataType: DataType): Boolean = false

  def collationKey(string: Expression): Expression = string

  /** Compares strings by their bytes. */
  def compare(left: UTF8String, right: UTF8String): Int = left.compareTo(right)

  /** Whether an expression is null if one of its children is. */
  def isNullIntolerant(e: Expression): Boolean = e.isInstanceOf[NullIntolerant]

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

  /** Cancels the jobs of a stage that is not done. */
  def cancel(stage: ExchangeQueryStageExec, @unused reason: String): Unit = stage.cancel()

  def outOfMemory(message: String): SparkOutOfMemoryError = new SparkOutOfMemoryError(message)
}
