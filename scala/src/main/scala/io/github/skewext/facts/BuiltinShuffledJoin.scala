package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, ShuffledJoin, SortMergeJoinExec}

/**
 * Joins of shuffled sides in which only equal keys and the condition decide which rows match: those
 * of Spark and skewext's own. It lists classes, because another `ShuffledJoin` may match rows in
 * another way, such as the as-of join of Spark 4.3 or a join of another extension.
 */
object BuiltinShuffledJoin {

  private val classes = Set[Class[_]](classOf[SortMergeJoinExec], classOf[ShuffledHashJoinExec])

  def unapply(plan: SparkPlan): Option[ShuffledJoin] = plan match {
    case join: OwnShuffledJoin => Some(join)
    case join: ShuffledJoin if classes(join.getClass) => Some(join)
    case _ => None
  }

  /** The join with other keys, sides and reads. It has the tags of the join. */
  def withParts(join: ShuffledJoin)(
      leftKeys: Seq[Expression] = join.leftKeys,
      rightKeys: Seq[Expression] = join.rightKeys,
      left: SparkPlan = join.left,
      right: SparkPlan = join.right,
      isSkewJoin: Boolean = join.isSkewJoin): ShuffledJoin = join match {
    case j: SortMergeJoinExec =>
      j.copy(leftKeys, rightKeys, j.joinType, j.condition, left, right, isSkewJoin)
    case j: ShuffledHashJoinExec =>
      j.copy(leftKeys, rightKeys, j.joinType, j.buildSide, j.condition, left, right, isSkewJoin)
    case j: OwnShuffledJoin => j.withParts(leftKeys, rightKeys, left, right, isSkewJoin)
  }
}

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
