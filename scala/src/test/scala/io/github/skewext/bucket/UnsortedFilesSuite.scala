package io.github.skewext.bucket

import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.functions.{col, lit, when}
import org.apache.spark.sql.skewext.RetriedTasks
import org.apache.spark.sql.{Column, DataFrame}

/** Bucket files whose order Spark did not write as it is declared, where failed tasks run again. */
class UnsortedFilesSuite extends SortedBucketTest with RetriedTasks {

  private val Window = "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t"

  /** With one key, Spark takes rows for sorted that are sorted by `v` in whatever direction. */
  private def withSortedBy(order: Column)(body: => Unit): Unit = withTable("t") {
    spark
      .range(0, 200, 1, 1)
      .select(lit(1L).as("k"), when(col("id") % 50 =!= 7, col("id")).as("v"))
      .sortWithinPartitions(order)
      .write
      .bucketBy(4, "k")
      .sortBy("k", "v")
      .saveAsTable("t")
    body
  }

  for (order <- Seq(col("v").desc, col("v").asc_nulls_last))
    test(s"the second attempt of a task sorts files of the order $order") {
      withSortedBy(order) {
        checkInFileOrder(spark.sql(Window), 1)
        val keys = spark.table("t").selectExpr("k AS k", "v % 7 AS w").where("v < 30")
        val joined = spark.table("t").where("v % 3 = 0").join(keys, "k")
        checkInFileOrder(joined, 2)
        val inOrder = spark.sql(Window).select("v").collect().map(row => Option(row.get(0)))
        withSQLConf(SkewConf.BUCKET_ORDER.key -> "false") {
          assert(inOrder === spark.sql(Window).select("v").collect().map(row => Option(row.get(0))))
        }
      }
    }

  test("a struct, whose order has no prefix") {
    withTable("t") {
      val rows: DataFrame = spark
        .range(0, 100, 1, 1)
        .selectExpr("1L AS k", "named_struct('a', id % 10, 'b', id) AS v")
      rows
        .sortWithinPartitions(col("v").desc)
        .write
        .bucketBy(4, "k")
        .sortBy("k", "v")
        .saveAsTable("t")
      checkInFileOrder(spark.sql(Window), 1)
    }
  }
}
