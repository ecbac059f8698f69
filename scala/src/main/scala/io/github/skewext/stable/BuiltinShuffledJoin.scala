package io.github.skewext.stable

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, ShuffledJoin, SortMergeJoinExec}

/**
 * Spark's joins of shuffled sides in which only equal keys and the condition decide which rows
 * match. It lists classes, because another `ShuffledJoin` may match rows in another way, such as
 * the as-of join of Spark 4.3 or a join of another extension.
 */
object BuiltinShuffledJoin {

  private val classes = Set[Class[_]](classOf[SortMergeJoinExec], classOf[ShuffledHashJoinExec])

  def unapply(plan: SparkPlan): Option[ShuffledJoin] = plan match {
    case join: ShuffledJoin if classes(join.getClass) => Some(join)
    case _ => None
  }
}
