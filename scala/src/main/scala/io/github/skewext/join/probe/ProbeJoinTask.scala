package io.github.skewext.join.probe

import io.github.skewext.facts.EvaluatedInTurn
import io.github.skewext.join.range.RangeMatch
import io.github.skewext.rows.{GroupingSettings, JoinKeys, TaskOutput}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, Expression}
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * Joins one partition: the zip function of the operator's RDD. It contains no plan, so that a
 * serialized task is small.
 *
 * @param buildSides for each task, the side that is built: 0 or 1.
 * @param opensEarly whether each side only reads a shuffle, without memory of its own.
 */
private[skewext] case class ProbeJoinTask(
    output: TaskOutput,
    keys: JoinKeys,
    kind: PairKind,
    condition: Option[PairCondition],
    buildSides: Array[Byte],
    opensEarly: Seq[Boolean],
    grouping: GroupingSettings,
    metrics: ProbeJoinMetrics)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  /** The condition as code; null if there is none. */
  def predicate: BasePredicate =
    condition.map(c => EvaluatedInTurn.predicate(c.expression, Nil)).orNull

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] =
    new ProbeJoinIterator(this, inputs, buildSides(partition)).toScala
}

/**
 * A condition besides the equality of keys, over [[PairRows]].
 *
 * @param range the range in it, if it has one.
 */
private[skewext] case class PairCondition(expression: Expression, range: Option[RangeMatch])

/** The operator's SQL metrics. A task adds to them once, at its end. */
private[skewext] case class ProbeJoinMetrics(
    outputRows: SQLMetric,
    build: BuildMetrics,
    probeRows: SQLMetric,
    sortedTasks: SQLMetric,
    indexedKeys: SQLMetric,
    spillSize: SQLMetric,
    peakMemory: SQLMetric)

/** @param sides for each side, the number of tasks that build it. */
private[skewext] case class BuildMetrics(rows: SQLMetric, size: SQLMetric, sides: Seq[SQLMetric])
