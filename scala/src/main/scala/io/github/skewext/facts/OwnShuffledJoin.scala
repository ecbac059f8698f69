package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.ShuffledJoin

/** A shuffled join of skewext that returns the rows of Spark's join with the same parameters. */
trait OwnShuffledJoin extends ShuffledJoin {

  /** The join with other keys, sides and reads. */
  def withParts(
      leftKeys: Seq[Expression],
      rightKeys: Seq[Expression],
      left: SparkPlan,
      right: SparkPlan,
      isSkewJoin: Boolean): ShuffledJoin
}
