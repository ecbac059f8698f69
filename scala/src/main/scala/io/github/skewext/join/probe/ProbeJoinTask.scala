package io.github.skewext.join.probe

import io.github.skewext.facts.EvaluatedInTurn
import io.github.skewext.join.range.RangeMatch
import io.github.skewext.rows.{GroupingSettings, JoinKeys}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, Expression}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.DataType

/**
 * Joins one partition: the zip function of the operator's RDD. It contains no plan, so that a
 * serialized task is small.
 *
 * @param inputTypes the column types of each side.
 * @param condition a further condition, over [[PairRows]].
 * @param range the range in the condition, over [[PairRows]], if it has one.
 * @param output the output's columns, as `RowAssembler` builds them.
 * @param makesRows whether the output is UnsafeRows, or the [[PairRows]] from which they are built.
 * @param buildSides for each task, the side that is built: 0 or 1.
 * @param opensEarly whether each side only reads a shuffle, without memory of its own.
 */
private[skewext] case class ProbeJoinTask(
    inputTypes: Seq[Seq[DataType]],
    keys: JoinKeys,
    kind: PairKind,
    condition: Option[Expression],
    range: Option[RangeMatch],
    output: Seq[Expression],
    makesRows: Boolean,
    buildSides: Array[Byte],
    opensEarly: Seq[Boolean],
    grouping: GroupingSettings,
    metrics: ProbeJoinMetrics)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  /** The condition as code; null if there is none. */
  def predicate: BasePredicate =
    condition.map(EvaluatedInTurn.predicate(_, Nil)).orNull

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] =
    new ProbeJoinIterator(this, inputs, buildSides(partition)).toScala
}

/** The operator's SQL metrics. A task adds to them once, at its end. */
private[skewext] case class ProbeJoinMetrics(
    outputRows: SQLMetric,
    buildRows: SQLMetric,
    buildSize: SQLMetric,
    probeRows: SQLMetric,
    builtSides: Seq[SQLMetric],
    sortedTasks: SQLMetric,
    indexedKeys: SQLMetric,
    spillSize: SQLMetric,
    peakMemory: SQLMetric)
