package org.apache.spark.sql.skewext

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleReadMetricsReporter, SQLShuffleWriteMetricsReporter}

/**
 * Rows that a task adds to the metrics of its shuffles, beside those that Spark counts. Lives here
 * because Spark's reporters are `private[spark]`.
 */
object ShuffleMetrics {

  /** @param metrics the metrics of the exchange */
  def read(context: TaskContext, metrics: Map[String, SQLMetric]): Long => Unit = {
    val reporter = new SQLShuffleReadMetricsReporter(
      context.taskMetrics().createTempShuffleReadMetrics(),
      metrics)
    reporter.incRecordsRead(_)
  }

  /** @param metrics the metrics of the exchange */
  def written(context: TaskContext, metrics: Map[String, SQLMetric]): Long => Unit = {
    val reporter =
      new SQLShuffleWriteMetricsReporter(context.taskMetrics().shuffleWriteMetrics, metrics)
    reporter.incRecordsWritten(_)
  }
}
