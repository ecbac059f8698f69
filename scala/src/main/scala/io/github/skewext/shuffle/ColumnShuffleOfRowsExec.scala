package io.github.skewext.shuffle

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleOrigin
import org.apache.spark.sql.vectorized.ColumnarBatch

/** A columnar shuffle of the rows of any operator. */
case class ColumnShuffleOfRowsExec(
    protected val byHash: HashPartitioning,
    child: SparkPlan,
    shuffleOrigin: ShuffleOrigin,
    advisoryPartitionSize: Option[Long])
    extends ColumnShuffleExchangeExec {

  override protected def batches: RDD[ColumnarBatch] = {
    val types = child.output.map(_.dataType)
    child.execute().mapPartitions(new RowBatches(_, types))
  }

  override protected def ofRows: SparkPlan = child

  override protected def withNewChildInternal(newChild: SparkPlan): ColumnShuffleOfRowsExec =
    copy(child = newChild)
}
