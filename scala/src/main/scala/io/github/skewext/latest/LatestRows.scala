package io.github.skewext.latest

import io.github.skewext.join.UnorderedInputs
import io.github.skewext.platform.HasOperator

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan

/**
 * One row of each key: the first one in an order. If the order does not decide, the bytes of the
 * rows do. Rows with a null key have a key, too, as in a GROUP BY.
 *
 * @param keys the compared expressions.
 */
case class LatestRows(keys: Seq[Expression], order: Seq[SortOrder], child: LogicalPlan)
    extends UnaryNode
    with HasOperator
    with UnorderedInputs {

  override def output: Seq[Attribute] = child.output

  override def maxRows: Option[Long] = child.maxRows

  override protected lazy val validConstraints: ExpressionSet = child.constraints

  override lazy val distinctKeys: Set[ExpressionSet] = Set(ExpressionSet(keys))

  override def operator(inputs: Seq[SparkPlan]): SparkPlan =
    LatestRowsExec(keys, order, inputs.head)

  override protected def withNewChildInternal(newChild: LogicalPlan): LatestRows =
    copy(child = newChild)
}
