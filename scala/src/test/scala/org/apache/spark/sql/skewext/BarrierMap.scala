package org.apache.spark.sql.skewext

import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.PythonUDF
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MapInPandas}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** `mapInPandas` of the rows themselves. The strategy runs it without Python. */
object BarrierMap {

  def apply(child: LogicalPlan, isBarrier: Boolean): LogicalPlan = {
    val function = PythonUDF(
      "same",
      null,
      child.schema,
      child.output,
      PythonEvalType.SQL_MAP_PANDAS_ITER_UDF,
      udfDeterministic = true)
    BarrierMapExec.logical(function, child, isBarrier)
  }

  object Strategy extends SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case map: MapInPandas => BarrierMapExec(map, planLater(map.child)) :: Nil
      case _ => Nil
    }
  }

  private[skewext] def execute(child: SparkPlan, isBarrier: Boolean): RDD[InternalRow] = {
    val rows = child.execute()
    if (isBarrier) rows.barrier().mapPartitions(identity) else rows
  }
}
