package io.github.skewext.skew.run

import io.github.skewext.skew.plan.SkewSplits

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

/** The metrics of a join's splits, which are known before its tasks run. */
private[skewext] object SplitMetrics {

  private val counts: Seq[(String, String, SkewSplits => Int)] = Seq(
    ("numSkewedPartitions", "skewed partitions", _.partitions.size),
    ("numOutputSkewed", "partitions split for their output", _.splitByOutput),
    ("numPieces", "pieces", _.pieces),
    ("numResiduals", "residuals", _.residuals),
    ("numMarkingTasks", "tasks that %s before the join", _.markingTasks))

  /** @param marked what the tasks before the join did. */
  def of(sc: SparkContext, marked: String): Map[String, SQLMetric] =
    counts.map { case (name, text, _) =>
      name -> SQLMetrics.createMetric(sc, s"number of ${text.format(marked)}")
    }.toMap + ("rereadSize" -> SQLMetrics.createSizeMetric(sc, "data read again"))

  def report(splits: SkewSplits, sc: SparkContext, metrics: Map[String, SQLMetric]): Unit = {
    val values = counts.map { case (name, _, count) => name -> count(splits).toLong } :+
      ("rereadSize" -> splits.rereadBytes)
    values.foreach { case (name, value) => metrics(name).set(value) }
    SQLMetrics.postDriverMetricUpdates(
      sc,
      sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      values.map { case (name, _) => metrics(name) })
  }
}
