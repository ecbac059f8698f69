package io.github.skewext.skew

import io.github.skewext.explain.Explainer
import org.apache.spark.sql.skewext.SqlInternals

import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, ResultQueryStageExec}

/** The last stage of an adaptive plan is a node of its own, and whatever looks for joins looks into it. */
class ResultStageSuite extends SkewTest {

  test("explains the splits of joins in the last stage") {
    val df = fullJoin("k")(skewed(0, 900, hot = 3), skewed(1, 40))
    val split = checkSplit(df)
    val plan = df.queryExecution.executedPlan.asInstanceOf[AdaptiveSparkPlanExec].executedPlan
    assert(plan.isInstanceOf[ResultQueryStageExec])
    val text = SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution)).json
    assert(text.contains(split.splits.describe), text)
  }
}
