package io.github.skewext.planner

import io.github.skewext.MultiJoinTest
import io.github.skewext.internal.Guard

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._

class SpreadNullKeysSuite extends MultiJoinTest {

  /** A cached table that is partitioned by k, in so many partitions. */
  private def cached(i: Int, partitions: Int): DataFrame = {
    var df = spark.emptyDataFrame
    withSQLConf("spark.sql.shuffle.partitions" -> partitions.toString) {
      df = spark
        .range(40)
        .selectExpr("id % 7 AS k", "if(id % 3 = 0, null, id % 5) AS j", "id")
        .groupBy("k")
        .agg(max("j").as("j"), sum("id").as(s"v$i"))
        .cache()
      df.count()
    }
    df
  }

  test("spreads null keys above a join of tables with different numbers of partitions") {
    withSQLConf(
      "spark.sql.adaptive.enabled" -> "true",
      "spark.sql.autoBroadcastJoinThreshold" -> "-1",
      "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning" -> "false") {
      try {
        val below = cached(0, 3).join(cached(1, 4).drop("j"), Seq("k"))
        val df = fullJoin("j")(below, cached(2, 5).drop("k"), cached(3, 2).drop("k"))
        checkJoin(df)
        assert(operator(df).spreadNullKeys, df.queryExecution.executedPlan)
        assert(!Guard.failures.exists(_.contains(SpreadNullKeys.ruleName)), Guard.failures)
      } finally spark.catalog.clearCache()
    }
  }
}
