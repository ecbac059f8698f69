package org.apache.spark.sql.skewext

import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, PythonUDF}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** `mapInPandas` of the rows themselves, without Python. */
case class BarrierMap(child: LogicalPlan, isBarrier: Boolean) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): BarrierMap =
    copy(child = newChild)
}

object BarrierMap {

  object Strategy extends SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case BarrierMap(child, isBarrier) =>
        val function = PythonUDF(
          "same",
          null,
          child.schema,
          Nil,
          PythonEvalType.SQL_MAP_PANDAS_ITER_UDF,
          udfDeterministic = true)
        BarrierMapExec(function, planLater(child), isBarrier) :: Nil
      case _ => Nil
    }
  }

  private[skewext] def execute(child: SparkPlan, isBarrier: Boolean): RDD[InternalRow] = {
    val rows = child.execute()
    if (isBarrier) rows.barrier().mapPartitions(identity) else rows
  }
}
