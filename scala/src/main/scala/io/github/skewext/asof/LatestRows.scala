package io.github.skewext.asof

import io.github.skewext.asof.exec.LatestRowsExec
import io.github.skewext.rules.HasOperator
import io.github.skewext.stable.ComparedByBytes

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/**
 * One row of each key: the first one in an order. If the order does not decide, the bytes of the
 * rows do. Rows with a null key have a key, too, as in a GROUP BY.
 *
 * @param keys the compared expressions.
 */
case class LatestRows(keys: Seq[Expression], order: Seq[SortOrder], child: LogicalPlan)
    extends UnaryNode
    with HasOperator {

  override def output: Seq[Attribute] = child.output

  override def maxRows: Option[Long] = child.maxRows

  override protected lazy val validConstraints: ExpressionSet = child.constraints

  /** Not of keys that a DISTINCT above shows as others, such as 0.0 for -0.0. */
  override lazy val distinctKeys: Set[ExpressionSet] =
    if (conf.getConf(SQLConf.PROPAGATE_DISTINCT_KEYS_ENABLED) && keys.forall(ComparedByBytes(_)))
      Set(ExpressionSet(keys))
    else Set.empty

  override def operator(inputs: Seq[SparkPlan]): SparkPlan =
    LatestRowsExec(keys, order, inputs.head)

  override protected def withNewChildInternal(newChild: LogicalPlan): LatestRows =
    copy(child = newChild)
}
