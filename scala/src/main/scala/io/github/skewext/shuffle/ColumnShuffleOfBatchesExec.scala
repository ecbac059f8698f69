package io.github.skewext.shuffle

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.exchange.ShuffleOrigin
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * A columnar shuffle of the batches of a scan, of which no row is built.
 *
 * It is a transition to rows, so that Spark inserts none below it.
 */
case class ColumnShuffleOfBatchesExec(
    protected val byHash: HashPartitioning,
    child: SparkPlan,
    shuffleOrigin: ShuffleOrigin,
    advisoryPartitionSize: Option[Long])
    extends ColumnShuffleExchangeExec
    with ColumnarToRowTransition {

  override protected def batches: RDD[ColumnarBatch] = child.executeColumnar()

  override protected def ofRows: SparkPlan = ofRows(child)

  private def ofRows(plan: SparkPlan): SparkPlan = plan match {
    case select: ColumnarFilterProjectExec => select.ofRows(ofRows(select.child))
    case node if node.exists(_.isInstanceOf[ColumnarFilterProjectExec]) =>
      node.withNewChildren(node.children.map(ofRows))
    case columns => ColumnarToRowExec(columns)
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ColumnShuffleOfBatchesExec =
    copy(child = newChild)
}
