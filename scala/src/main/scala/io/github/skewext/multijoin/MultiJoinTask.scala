package io.github.skewext.multijoin

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.DataType

/**
 * What a task needs to join one partition: the zip function of the operator's RDD. It carries no
 * plan, so that a task is small on the wire.
 *
 * @param inputTypes the columns of each input
 * @param output the output's columns, over [[InputRows]]
 */
private[multijoin] case class MultiJoinTask(
    inputTypes: Seq[Seq[DataType]],
    keys: JoinKeys,
    roles: Seq[InputRole],
    output: Seq[Expression],
    withIndicator: Boolean,
    grouping: GroupingSettings,
    metrics: MultiJoinMetrics)
  extends (Array[Iterator[InternalRow]] => Iterator[InternalRow]) {

  override def apply(inputs: Array[Iterator[InternalRow]]): Iterator[InternalRow] =
    new MultiJoinIterator(this, inputs).toScala
}

/** The operator's SQL metrics; a task adds to them once, when it ends. */
private[multijoin] case class MultiJoinMetrics(
    outputRows: SQLMetric,
    inputRows: Seq[SQLMetric],
    groups: SQLMetric,
    nullKeys: SQLMetric,
    spillSize: SQLMetric,
    peakMemory: SQLMetric)
