package io.github.skewext.join.range

import io.github.skewext.facts.KeepsStableRows

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.{BroadcastPartitioning, IdentityBroadcastMode, Partitioning}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

/**
 * The rows of a broadcast [[RangeRelation]], as Spark's nested loop join reads them. The driver reads
 * them and broadcasts them once more, so they must be few.
 */
case class BroadcastRowsExec(child: SparkPlan) extends UnaryExecNode with KeepsStableRows {

  override def passesColumns: Boolean = true

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = BroadcastPartitioning(IdentityBroadcastMode)

  @transient private lazy val rows: Broadcast[Array[InternalRow]] = {
    val relation = new RangeRelation(child.executeBroadcast[Array[InternalRow]]().value)
    val row = new UnsafeRow(output.size)
    sparkContext.broadcast(Array.tabulate[InternalRow](relation.numRows) { i =>
      relation.pointTo(row, i)
      row.copy()
    })
  }

  override def doExecuteBroadcast[T](): Broadcast[T] = rows.asInstanceOf[Broadcast[T]]

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException(nodeName)

  override protected def withNewChildInternal(newChild: SparkPlan): BroadcastRowsExec =
    copy(child = newChild)
}
