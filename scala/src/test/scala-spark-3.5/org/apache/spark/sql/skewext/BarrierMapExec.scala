package org.apache.spark.sql.skewext

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MapInPandas}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.MapInPandasExec

/** `mapInPandas` of the rows themselves, without Python. */
class BarrierMapExec(
    function: Expression,
    rows: Seq[Attribute],
    input: SparkPlan,
    ofBarrier: Boolean)
    extends MapInPandasExec(function, rows, input, ofBarrier) {

  override protected def doExecute(): RDD[InternalRow] = BarrierMap.execute(child, isBarrier)

  override protected def withNewChildInternal(newChild: SparkPlan): MapInPandasExec =
    new BarrierMapExec(func, output, newChild, isBarrier)
}

object BarrierMapExec {

  def logical(function: Expression, child: LogicalPlan, isBarrier: Boolean): LogicalPlan =
    MapInPandas(function, child.output.map(_.newInstance()), child, isBarrier)

  def apply(map: MapInPandas, input: SparkPlan): SparkPlan =
    new BarrierMapExec(map.functionExpr, map.output, input, map.isBarrier)
}
