package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.sql.JoinSuite

/** Spark's own tests of joins, with all of them rewritten. */
class ForcedJoinSuite extends JoinSuite with RewriteForced {

  override protected def multiJoins: Long = 100

  override protected def leftOut: Map[String, String] = Map(
    "cross join with broadcast" -> "a cross join with equal keys is ours",
    "equi-join is hash-join" -> "an inner join is ours",
    "multiple-key equi-join is hash-join" -> "an inner join is ours",
    "join operator selection" -> "inner and outer joins are ours",
    "broadcasted existence join operator selection" -> "an anti join is ours",
    "test SortMergeJoin (with spill)" -> "wants a sort-merge join to spill; ours needs not, so soon",
    "test SortMergeJoin output ordering" -> "wants sort-merge joins; ours has no order",
    "SPARK-22445 Respect stream-side child's needCopyResult in BroadcastHashJoin" ->
      "wants two broadcast hash joins; ours is the lower one",
    "SPARK-35984: Config to force applying shuffled hash join" -> "outer joins are ours")
}
