package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.execution.SparkPlan

/**
 * An operator of skewext whose rows are stable if the rows of its children are, see [[StableRows]].
 */
trait KeepsStableRows extends SparkPlan {

  /**
   * Whether the operator returns columns of its child, and its expressions alone determine which
   * rows it returns, and in which task.
   */
  def passesColumns: Boolean = false

  /** Of each child, the columns that decide which rows the node gives. */
  def columnsRead: Seq[AttributeSet] = children.map(_.outputSet)
}
