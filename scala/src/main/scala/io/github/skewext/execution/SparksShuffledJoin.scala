package io.github.skewext.execution

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, ShuffledJoin, SortMergeJoinExec}

/**
 * Spark's joins of shuffled sides, of which we know that rows match by equal keys and the condition
 * alone. Not whatever is a `ShuffledJoin`: the as-of join of Spark 4.3 is one, and so may be those of
 * other extensions.
 */
object SparksShuffledJoin {

  private val classes = Set[Class[_]](classOf[SortMergeJoinExec], classOf[ShuffledHashJoinExec])

  def unapply(plan: SparkPlan): Option[ShuffledJoin] = plan match {
    case join: ShuffledJoin if classes(join.getClass) => Some(join)
    case _ => None
  }
}
