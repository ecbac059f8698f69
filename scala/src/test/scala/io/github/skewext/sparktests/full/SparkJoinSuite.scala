package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.sql.JoinSuite

/** Spark's own tests of joins. */
class SparkJoinSuite extends JoinSuite with SparkSuite {

  override protected def ourJoins: Long = 30

  override protected def leftOut: Map[String, String] = Map(
    "cross join with broadcast" -> "wants Spark's join of a condition with equal keys",
    "join operator selection" -> "wants Spark's joins",
    "broadcasted existence join operator selection" -> "wants Spark's anti join",
    "test SortMergeJoin (with spill)" -> "wants a sort-merge join to spill; ours needs not, so soon",
    "test SortMergeJoin output ordering" -> "wants sort-merge joins; ours has no order",
    "SPARK-22445 Respect stream-side child's needCopyResult in BroadcastHashJoin" ->
      "wants Spark's sort-merge join below a broadcast join",
    "SPARK-35984: Config to force applying shuffled hash join" -> "wants Spark's hash join")
}
