package io.github.skewext.join.range

import io.github.skewext.join.probe.PairCodegen

import org.apache.spark.sql.catalyst.expressions.{And, BindReferences, EqualTo, Expression}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

/** A join whose condition has a range, with or without equal keys. */
private[skewext] trait RangeJoinOperator extends PairCodegen {

  /** The range in the condition, which it must have. */
  @transient lazy val range: RangeMatch = {
    val found = RangeMatch.of(condition.get, sides.map(_.outputSet)).get
    RangeMatch(found.left.copy(keys = leftKeys), found.right.copy(keys = rightKeys))
  }

  protected def pairMetrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numStreamedRows" -> SQLMetrics.createMetric(sparkContext, "number of streamed rows"),
    "numTests" -> SQLMetrics.createMetric(sparkContext, "number of pairs tested"))

  /** The intervals of a side, over its own rows. */
  protected def boundEnds(side: Int): RangeEnds =
    range.sides(side).map(BindReferences.bindReference(_, sides(side).output))

  /** Different keys may have one hash. */
  private def equalKeys: Seq[Expression] =
    leftKeys.zip(rightKeys).map { case (l, r) => overPairs(EqualTo(l, r)) }

  /** @param build the side with the index: 0 or 1. */
  protected def task(build: Int, makesRows: Boolean): RangeJoinTask = RangeJoinTask(
    output = taskOutput(makesRows),
    build = build,
    ends = range.sides(1 - build).map(overPairs),
    kind = kind,
    condition = (equalKeys ++ boundCondition).reduce(And),
    outputRows = longMetric("numOutputRows"),
    streamedRows = longMetric("numStreamedRows"),
    tests = longMetric("numTests"))
}
