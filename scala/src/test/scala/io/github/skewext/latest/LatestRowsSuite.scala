package io.github.skewext.latest

import io.github.skewext.asof.AsOfTables

import org.apache.spark.sql.catalyst.plans.logical.{Filter, Sort}
import org.apache.spark.sql.execution.SortExec
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.TestTask
import org.apache.spark.sql.{AnalysisException, DataFrame, Encoders}

/** `latest`, against `row_number`. */
class LatestRowsSuite extends AsOfTables {

  private val Ints = "array(-5, -3, 0, 1, 2, 7, 8, 11)"

  test("the latest row of each key, as by row_number", Slow) {
    val data = rows(1, 200, 5, Ints, "t")
    val order = Seq(col("t").desc_nulls_last, col("x1").asc, col("id1").desc)
    val expected = data
      .withColumn("n", row_number().over(Window.partitionBy("k").orderBy(order: _*)))
      .where("n = 1")
      .drop("n")
    for (settings <- groupings; source <- Seq(data, stored(data))) withSQLConf(settings: _*) {
      val df = latest(source, "k")(col("t"), col("x1").asc)(col("id1"))
      assertSameRows(df.collect().toSeq, expected.collect().toSeq, s"row_number, $settings")
    }
    withAdaptive {
      val df = latest(data, "k")(col("t"), col("x1").asc)(col("id1"))
      assertSameRows(df.collect().toSeq, expected.collect().toSeq, "row_number")
      assert(exchanges(df).size === 1)
      // A join on the key needs no further exchange of it.
      assert(exchanges(fullJoin("k")(df, table("k, z", "(1, 1)"))).size === 2)
    }
    // A predicate on another column, or on a key that is not compared by its bytes, stays above.
    val ofDouble = latest(data.withColumn("d", col("k") * 1.0), "d")(col("t"))(col("id1"))
    val filtered = Seq(
      latest(data, "k")(col("t"), col("x1").asc)(col("id1")).where("k > 1 AND x1 > 2"),
      ofDouble.where("d > 1"))
    assertSameRows(
      filtered.head.collect().toSeq,
      expected.where("k > 1 AND x1 > 2").collect().toSeq,
      "row_number")
    val below = filtered.map { df =>
      val plan = df.queryExecution.optimizedPlan.collectFirst { case node: LatestRows => node }.get
      plan.collect { case filter: Filter => filter.condition.sql }.mkString
    }
    assert(below.map(_.contains("> 1")) === Seq(true, false) && !below.head.contains("x1"), below)
    assert(
      intercept[AnalysisException](latest(data, "k")()()).getMessage.contains("list 'by' is empty"))
  }

  test("null keys are equal to each other, and to no other key") {
    val data = spark
      .range(0, 120, 1, 2)
      .selectExpr(
        "IF(id % 5 < 2, NULL, id % 3) AS k",
        "IF(id % 7 < 3, NULL, IF(id % 2 = 0, '', 'x')) AS j",
        "IF(id % 4 = 0, NULL, IF(id % 3 = 0, -0.0D, 0.0D)) AS d",
        "id AS t")
    for (keys <- Seq(Seq("k"), Seq("k", "j"), Seq("j", "d")); settings <- groupings)
      withSQLConf(settings: _*) {
        val newest = Window.partitionBy(keys.map(col): _*).orderBy(col("t").desc)
        val expected = data.withColumn("n", row_number().over(newest)).where("n = 1").drop("n")
        for (source <- Seq(
            data,
            data.repartition(2, keys.map(col): _*).sortWithinPartitions(keys.map(col): _*))) {
          val found = latest(source, keys: _*)(col("t"))()
          assertSameRows(found.collect().toSeq, expected.collect().toSeq, s"$keys, $settings")
        }
      }
  }

  test("the order of the rows depends on memory, and Spark knows it") {
    val df = latest(stored(rows(1, 200, 5, Ints, "t")).coalesce(1), "k")(col("t"))(col("id1"))
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      assert(exchanges(again(df)).isEmpty)
      assert(TestTask.level(again(df).queryExecution.toRdd) === "UNORDERED")
    }
  }

  test("the ORDER BY of the rows is removed") {
    val data = rows(1, 200, 5, Ints, "t")
    def sorts(df: DataFrame): Int =
      df.queryExecution.optimizedPlan.collect { case s: Sort => s }.size
    val sorted = latest(data.orderBy("x1"), "k")(col("t"))(col("id1"))
    assert(sorts(sorted) === 0)
    assertSameRows(
      sorted.collect().toSeq,
      latest(data, "k")(col("t"))(col("id1")).collect().toSeq,
      "unsorted rows")
    val few = data.orderBy("id1").limit(50)
    val ofFew = latest(few, "k")(col("t"))(col("id1"))
    assert(sorts(ofFew) === 1)
    assertSameRows(
      ofFew.collect().toSeq,
      latest(data.where("id1 < 50"), "k")(col("t"))(col("id1")).collect().toSeq,
      "the rows of the limit")
  }

  test("the latest rows of sorted rows are sorted") {
    val sorted =
      rows(1, 200, 5, Ints, "t").repartition(col("k")).sortWithinPartitions("k", "t")
    val df = latest(sorted, "k")(col("t"))(col("id1"))
    val again = df.sortWithinPartitions("k")
    def sorts(of: DataFrame) = collect(of.queryExecution.executedPlan) { case s: SortExec =>
      s
    }.size
    withAdaptive {
      assertSameRows(again.collect().toSeq, df.collect().toSeq, "unsorted")
      assert(sorts(again) === 1, again.queryExecution)
      val keys = df
        .where("k IS NOT NULL")
        .select("k")
        .mapPartitions { partition =>
          val all = partition.map(_.getInt(0)).toSeq
          Iterator(all == all.sorted)
        }(Encoders.scalaBoolean)
      assert(keys.collect().forall(identity))
      // By another order, rows are grouped by hash.
      val other = latest(sorted, "k")(col("t"))(col("id1")).sortWithinPartitions("t")
      other.collect()
      assert(sorts(other) === 2)
    }
  }
}
