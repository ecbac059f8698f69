package io.github.skewext.rules

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** A logical node of skewext that nothing but its own operator can execute. */
trait HasOperator extends LogicalPlan {

  /** @param inputs the plans of the children */
  def operator(inputs: Seq[SparkPlan]): SparkPlan

  /** Plans the children. `later` plans one as it is, after this node. */
  def plannedInputs(later: LogicalPlan => SparkPlan): Seq[SparkPlan] = children.map(later)
}

/** Plans such nodes. */
object OwnOperators extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case node: HasOperator => node.operator(node.plannedInputs(planLater)) :: Nil
    case _ => Nil
  }
}
