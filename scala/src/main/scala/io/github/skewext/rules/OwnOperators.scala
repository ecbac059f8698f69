package io.github.skewext.rules

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** A logical node of skewext that nothing but its own operator can execute. */
trait HasOperator extends LogicalPlan {

  /** @param inputs the plans of the children */
  def operator(inputs: Seq[SparkPlan]): SparkPlan
}

/** Plans such nodes. */
object OwnOperators extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case node: HasOperator => node.operator(node.children.map(planLater)) :: Nil
    case _ => Nil
  }
}
