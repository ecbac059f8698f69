package io.github.skewext.asof.exec

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{SortOrder, UnsafeRow}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.{SortExec, SparkPlan}

/** Sorts the rows of each partition by Spark's external sorter, and reports what it spills. */
private[skewext] object SortedRows {

  /** @param input the plan of the rows, which may have other reads. */
  def apply(order: Seq[SortOrder], input: SparkPlan, spillSize: SQLMetric)(
      rows: RDD[InternalRow]): RDD[InternalRow] = {
    val sort = SortExec(order, global = false, input)
    rows.mapPartitions { unsorted =>
      val metrics = TaskContext.get().taskMetrics()
      val spilled = metrics.memoryBytesSpilled
      val sorted = sort.createSorter().sort(unsorted.asInstanceOf[Iterator[UnsafeRow]])
      spillSize += metrics.memoryBytesSpilled - spilled
      sorted
    }
  }
}
