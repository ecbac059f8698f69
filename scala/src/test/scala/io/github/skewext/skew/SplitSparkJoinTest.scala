package io.github.skewext.skew

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.functions._

/** Joins of Spark's of two skewed tables. */
trait SplitSparkJoinTest extends SkewTest {

  protected val hints = Seq("merge", "shuffle_hash")

  protected def left(hot: Int) =
    skewed(0, if (hot > 0) 800 else 60, hot).withColumnRenamed("k", "l")
  protected def right(hot: Int) =
    skewed(1, if (hot > 0) 800 else 60, hot).withColumnRenamed("k", "r")

  protected def join(
      l: DataFrame,
      r: DataFrame,
      how: String,
      hint: String,
      key: String = "r"): DataFrame =
    l.join(r.hint(hint), col("l") === col(key), how)

  protected def splitBySpark(df: DataFrame): Boolean =
    collect(df.queryExecution.executedPlan) { case j: ShuffledJoin if j.isSkewJoin => j }.nonEmpty
}
