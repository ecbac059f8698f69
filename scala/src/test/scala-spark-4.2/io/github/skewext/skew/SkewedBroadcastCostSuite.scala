package io.github.skewext.skew

import io.github.skewext.skew.split.SkewJoinCostEvaluator

import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.internal.SQLConf

/** Spark 4.2 splits the streamed side of a broadcast join as well, and its evaluator counts that. */
class SkewedBroadcastCostSuite extends SkewTest {

  test("a split broadcast join costs less than one that is not") {
    withSQLConf(Force -> "true", SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "10MB") {
      val joined = skewed(0, 50).join(skewed(1, 40), "k")
      val Seq(join) = collect(joined.queryExecution.sparkPlan) { case j: BroadcastHashJoinExec =>
        j
      }
      def cost(isSkewJoin: Boolean) =
        new SkewJoinCostEvaluator().evaluateCost(join.copy(isSkewJoin = isSkewJoin))
      assert(cost(isSkewJoin = true) < cost(isSkewJoin = false))
    }
  }
}
