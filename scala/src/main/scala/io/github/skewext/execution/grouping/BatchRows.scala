package io.github.skewext.execution.grouping

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.vectorized.ColumnarBatch

/** The rows of a scan that gives batches of columns. All are one object. */
private[skewext] final class BatchRows(
    maker: BatchRowMaker,
    batches: Iterator[ColumnarBatch],
    numRows: SQLMetric,
    numBatches: SQLMetric)
    extends Iterator[InternalRow] {

  private[this] val place = new BatchRowMaker.Place(maker.numColumns)
  private[this] var numInBatch = 0
  private[this] var upcoming = 0

  override def hasNext: Boolean = {
    while (upcoming == numInBatch && batches.hasNext) open(batches.next())
    upcoming < numInBatch
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    upcoming += 1
    maker.make(upcoming - 1, place)
  }

  private def open(batch: ColumnarBatch): Unit = {
    numInBatch = batch.numRows
    upcoming = 0
    numRows += numInBatch.toLong
    numBatches += 1
    maker.open(batch)
  }
}

private[skewext] object BatchRows {

  /** The rows of a plan that is one of Spark's scans, if all columns are of simple types. */
  def of(plan: SparkPlan): Option[RDD[InternalRow]] =
    BatchScan.of(plan).filter(_.condition.isEmpty).map { read =>
      val columns = read.columns
      val numRows = read.toRows.metrics("numOutputRows")
      val numBatches = read.toRows.metrics("numInputBatches")
      read.scan
        .executeColumnar()
        .mapPartitions(new BatchRows(columns.rowMaker(), _, numRows, numBatches))
    }
}
