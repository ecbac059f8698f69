package io.github.skewext.join.range

import io.github.skewext.join.probe.PairCodegen

import org.apache.spark.sql.catalyst.expressions.Expression

/** A join without equal keys whose condition has a range. */
private[skewext] trait RangeJoinOperator extends PairCodegen {

  override def leftKeys: Seq[Expression] = Nil

  override def rightKeys: Seq[Expression] = Nil

  /** The range in the condition, which it must have. */
  def range: RangeMatch = RangeMatch.of(condition.get, sides.map(_.outputSet)).get
}
