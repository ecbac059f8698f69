package io.github.skewext.asof.exec

import io.github.skewext.join.exec.grouping.{KeyOrder, UnsafeInputs}
import io.github.skewext.shuffle.ReadsBulkRows
import io.github.skewext.stable.KeepsStableRows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{ClusteredDistribution, Distribution, Partitioning}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{RowIterator, SparkPlan, UnaryExecNode}

/**
 * Executes [[io.github.skewext.asof.LatestRows]]. It sorts rows by key alone and keeps the latest of
 * each key.
 */
case class LatestRowsExec(keys: Seq[Expression], order: Seq[SortOrder], child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows
    with ReadsBulkRows {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def requiredChildDistribution: Seq[Distribution] = Seq(ClusteredDistribution(keys))

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "spillSize" -> SQLMetrics.createSizeMetric(sparkContext, "spill size"))

  override protected def doExecute(): RDD[InternalRow] = {
    val types = child.output.map(_.dataType)
    val sameKey = KeyOrder(Seq(BindReferences.bindReferences(keys, child.output)))
    val ties = order.map(BindReferences.bindReference(_, child.output))
    val outputRows = longMetric("numOutputRows")
    sorted.mapPartitions { rows =>
      val distinct =
        new DistinctRows(0, rows, sameKey, ties, types.size, new UnsafeInputs(Seq(types)))
      new RowIterator {
        private[this] val latest = UnsafeRow.createFromByteArray(0, types.size)

        override def getRow: InternalRow = latest

        override def advanceNext(): Boolean = {
          val found = distinct.read(latest) != null
          if (found) outputRows += 1
          found
        }
      }.toScala
    }
  }

  private def sorted: RDD[InternalRow] = {
    val byKey = keys.map(SortOrder(_, Ascending))
    if (SortOrder.orderingSatisfies(child.outputOrdering, byKey)) child.execute()
    else SortedRows(byKey, child, longMetric("spillSize"))(child.execute())
  }

  override protected def withNewChildInternal(newChild: SparkPlan): LatestRowsExec =
    copy(child = newChild)
}
