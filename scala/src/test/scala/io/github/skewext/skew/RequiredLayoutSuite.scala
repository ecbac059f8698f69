package io.github.skewext.skew

import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.skew.run.SplitJoinExec

import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.{QueryExecution, SortExec}
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.util.QueryExecutionListener

/** Repartitions, sorts and writes to buckets above a skewed join, some of which it must not disturb. */
class RequiredLayoutSuite extends SkewTest {

  /** Spark's join, which gives its rows by and in the order of `l`. */
  private def joined: DataFrame =
    skewed(0, 60)
      .withColumnRenamed("k", "l")
      .join(
        skewed(1, 800, 2).withColumnRenamed("k", "r").hint("merge"),
        col("l") === col("r"),
        "left")

  private def grouped: DataFrame =
    joined.groupBy((col("v1") % 7).as("g")).agg(count("*").as("n"))

  test("a requirement on an operator above the join is no obstacle", Slow) {
    for ((df, shuffles) <- Seq(
        // Spark drops this repartition, as the rows are grouped by the same.
        (grouped.repartition(col("g")), 3),
        (grouped.repartition(col("n")), 4),
        (grouped.sortWithinPartitions("g"), 3),
        (
          joined.withColumn("n", count("*").over(Window.partitionBy("v1"))).repartition(col("v1")),
          3))) {
      checkSplit(df)
      assert(exchanges(df).size === shuffles)
    }
    // The sort is above a shuffle, so the join need not give its order.
    val sortedAbove = grouped.sortWithinPartitions("g")
    checkSplit(sortedAbove)
    assert(sorts(sortedAbove) === 1)
  }

  test("a write to buckets of something else than the join is no obstacle") {
    withTable("written") {
      @volatile var split = false
      val listener = new QueryExecutionListener {
        override def onSuccess(name: String, query: QueryExecution, nanos: Long): Unit =
          if (operators(query.executedPlan).exists(_.isInstanceOf[SplitJoinExec])) split = true
        override def onFailure(name: String, query: QueryExecution, e: Exception): Unit = ()
      }
      spark.listenerManager.register(listener)
      try {
        grouped.write.bucketBy(shufflePartitions, "g").saveAsTable("written")
        eventually(timeout(10.seconds))(assert(split))
      } finally {
        spark.listenerManager.unregister(listener)
      }
      val rows = spark.table("written")
      assertSameRows(rows.collect().toSeq, rowsWhenOff(grouped), "the query that was written")
      assert(rows.inputFiles.length <= shufflePartitions)
    }
  }

  test("the join provides the distribution that is required of it") {
    for (df <- Seq(
        joined.repartition(col("l")),
        joined.where("v0 > 3").repartition(col("l")),
        // The second one is not dropped, but shows what the first one did.
        joined.repartition(col("l")).withColumn("p", spark_partition_id()).repartition(col("p")))) {
      df.collect()
      assert(splitJoins(df).isEmpty)
      assert(reasons(df).contains(SkewReason.UserRepartition))
    }
    val inOrder = joined.sortWithinPartitions("l")
    checkSplit(inOrder)
    assert(sorts(inOrder) === 1)
  }

  private def sorts(df: DataFrame): Int =
    collect(df.queryExecution.executedPlan) { case s: SortExec => s }.size
}
