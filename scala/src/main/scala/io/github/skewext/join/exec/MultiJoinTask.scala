package io.github.skewext.join.exec

import io.github.skewext.join.InputRole
import io.github.skewext.rows.{GroupingSettings, JoinKeys, KeyOrder, TaskOutput}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * Joins one partition: the zip function of the operator's RDD. It contains no plan, so that a
 * serialized task is small.
 *
 * @param ordered if defined, all inputs are sorted by their keys in this order.
 */
private[skewext] case class MultiJoinTask(
    output: TaskOutput,
    keys: JoinKeys,
    roles: Seq[InputRole],
    withIndicator: Boolean,
    ordered: Option[KeyOrder],
    grouping: GroupingSettings,
    metrics: MultiJoinMetrics)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] =
    new MultiJoinIterator(this, inputs).toScala
}

/**
 * The operator's SQL metrics. A task adds to them once, at its end.
 *
 * @param ofKind output rows of tasks that do the same part of a split partition.
 */
private[skewext] case class MultiJoinMetrics(
    outputRows: SQLMetric,
    inputRows: Seq[SQLMetric],
    groups: SQLMetric,
    nullKeys: SQLMetric,
    spillSize: SQLMetric,
    peakMemory: SQLMetric,
    ofKind: Option[SQLMetric] = None)
