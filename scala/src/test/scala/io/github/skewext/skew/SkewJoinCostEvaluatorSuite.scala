package io.github.skewext.skew

import io.github.skewext.skew.split.SkewJoinCostEvaluator

import org.apache.spark.sql.execution.joins.SortMergeJoinExec

/** The cost of plans with split joins. */
class SkewJoinCostEvaluatorSuite extends SkewTest {

  test("split joins count only where splits are forced") {
    val df = skewed(0, 10).join(skewed(1, 10).hint("merge"), "k")
    val split = df.queryExecution.sparkPlan.transform { case join: SortMergeJoinExec =>
      join.copy(isSkewJoin = true)
    }
    def costs = Seq(df.queryExecution.sparkPlan, split)
      .map(new SkewJoinCostEvaluator().evaluateCost)
    assert(costs.head.compare(costs.last) === 0)
    withSQLConf(Force -> "true") {
      assert(costs.head.compare(costs.last) > 0)
    }
  }
}
