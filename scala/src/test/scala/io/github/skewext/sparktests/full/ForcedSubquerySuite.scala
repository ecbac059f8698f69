package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.SparkConf
import org.apache.spark.sql.SubquerySuite

/** Spark's own tests of subqueries, with all joins rewritten and none broadcast. */
class ForcedSubquerySuite extends SubquerySuite with RewriteForced {

  override def sparkConf: SparkConf =
    super.sparkConf.set("spark.sql.autoBroadcastJoinThreshold", "-1")

  override protected def leftOut: Map[String, String] = Map(
    "SPARK-32290: SingleColumn Null Aware Anti Join Optimize" -> "wants broadcasts, which are off",
    "SPARK-36280: Remove redundant aliases after RewritePredicateSubquery" ->
      "counts shuffles; its join wants a broadcast, and these are off",
    "SPARK-38180, SPARK-36114: allow safe cast expressions in correlated equality conditions" ->
      "counts Spark's joins; an inner one is ours",
    "SPARK-39672: Fix removing project before filter with correlated subquery" ->
      "counts Spark's projections; one below an inner join is not needed by ours")
}
