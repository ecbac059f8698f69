package io.github.skewext.explain.report

import io.github.skewext.PythonApi
import io.github.skewext.skew.SkewTest
import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._

/** The figures of joins of stock Spark from which reports estimate gains. */
class JoinWorkSuite extends SkewTest {

  private implicit val formats: Formats = DefaultFormats

  private def reported(df: => DataFrame): JValue = {
    var found: JValue = JNothing
    withSQLConf(Off) {
      df.collect()
      found = JsonMethods.parse(PythonApi.queryReport(spark, null))
    }
    found
  }

  private def joins(report: JValue): Seq[JValue] = (report \ "join_work").children

  private def inputs(join: JValue): Seq[JValue] = (join \ "inputs").children

  private def works(report: JValue): Map[Int, JValue] =
    (report \ "stage_work").children.map(work => (work \ "stage").extract[Int] -> work).toMap

  private def long(value: JValue): Long = value.extract[Long]

  test("a chain of full joins: rows, writing stages, and the result that is shuffled again") {
    checkChain()
    // All joins have one name. The rows that stages read and write tell them apart.
    withSQLConf("spark.sql.codegen.wholeStage" -> "false")(checkChain())
  }

  private def checkChain(): Unit = {
    val counts = Seq(300, 200, 100)
    val Seq(a, b, c) = counts.zipWithIndex.map { case (rows, i) => skewed(i, rows, maps = 3) }
    val report = reported(a.join(b, Seq("k"), "full").join(c, Seq("k"), "full"))
    val Seq(upper, lower) = joins(report).sortBy(join => -long(join \ "stage"))
    val chained = Seq(upper, lower).map(inputs(_).map(i => (i \ "chained").extract[Boolean]))
    assert(chained === Seq(Seq(true, false), Seq(false, false)))
    assert(inputs(upper).head \ "stage" === lower \ "stage")
    assert(inputs(lower).map(i => long(i \ "rows")) === counts.take(2))
    assert(long(inputs(upper)(1) \ "rows") === counts(2))
    val stages = works(report)
    for (join <- Seq(upper, lower)) {
      val read = inputs(join).map(i => long(i \ "rows"))
      val written = inputs(join).map(i => stages((i \ "stage").extract[Int]))
      assert(written.map(work => long(work \ "written_rows")) === read)
      assert(written.forall(work => long(work \ "written_bytes") > 0))
      val own = stages((join \ "stage").extract[Int])
      assert(long(own \ "read_rows") === read.sum)
      assert((own \ "is_known").extract[Boolean])
    }
    val result = long(inputs(upper).head \ "rows")
    assert(long(stages((lower \ "stage").extract[Int]) \ "joined_rows") === result)
  }

  test("full joins on other keys than the merged one are no chain") {
    val a = skewed(0, 60)
    val b = skewed(1, 60).withColumnRenamed("k", "l")
    val c = skewed(2, 60).withColumnRenamed("k", "m")
    val report =
      reported(a.join(b, col("k") === col("l"), "full").join(c, col("k") === col("m"), "full"))
    assert(joins(report).size === 2)
    assert(joins(report).flatMap(inputs).forall(i => i \ "chained" === JBool(false)))
  }

  test("aggregates and windows in the stage of a join") {
    val joined =
      skewed(0, 80).join(skewed(1, 60).withColumnRenamed("k", "l"), col("k") === col("l"))
    val grouped = reported(joined.groupBy("k").count())
    val Seq(join) = joins(grouped)
    val stage = works(grouped)((join \ "stage").extract[Int])
    assert(long(stage \ "aggregated_rows") >= long(stage \ "joined_rows"))
    assert((stage \ "is_known").extract[Boolean])
    val numbered =
      reported(joined.withColumn("n", row_number().over(Window.partitionBy("k").orderBy("v1"))))
    val slow = works(numbered)((joins(numbered).head \ "stage").extract[Int])
    assert(slow \ "is_known" === JBool(false))
  }

  test("broadcast joins and joins of the extension have no work") {
    val a = skewed(0, 60)
    val b = skewed(1, 60)
    val small = reported(a.join(broadcast(b), Seq("k")))
    assert((small \ "joins").extract[Int] === 1)
    assert(joins(small) === Nil)
    fullJoin("k")(a, b).collect()
    val own = JsonMethods.parse(PythonApi.queryReport(spark, null))
    assert((own \ "joins").extract[Int] === 1)
    assert(joins(own) === Nil)
  }

  test("conditions of nested loops") {
    spark.range(40).selectExpr("id AS t", "id AS x").createOrReplaceTempView("points")
    spark.range(30).selectExpr("id AS lo", "id + 3 AS hi").createOrReplaceTempView("parts")
    val conditions = Seq(
      "t >= lo AND t < hi" -> Some("range"),
      "t BETWEEN lo AND hi AND x <> lo" -> Some("range"),
      "t - lo <= 5 AND t - lo >= -5" -> Some("range"),
      "abs(t - lo) <= 3" -> Some("range"),
      "t >= lo AND (hi IS NULL OR t < hi)" -> Some("range"),
      "t = lo OR x = hi" -> Some("or"),
      "(t = lo OR x = hi) AND t <> hi" -> Some("or"),
      "t = lo OR x < hi" -> None,
      "t < lo" -> None,
      "t < lo AND x < hi" -> None,
      "t + lo > 5" -> None)
    for {
      (condition, form) <- conditions
      side <- Seq("BROADCAST", "SHUFFLE_REPLICATE_NL")
    } {
      val query = s"SELECT /*+ $side(parts) */ * FROM points JOIN parts ON $condition"
      val Seq(join) = joins(reported(spark.sql(query)))
      assert((join \ "condition").extractOpt[String] === form, s"$condition $side")
      // Tasks of a product read the rows of a side several times.
      val pairs = inputs(join).map(i => long(i \ "rows")).product
      assert(math.abs(pairs - 40 * 30) <= 40, side)
    }
    for (kind <- Seq("LEFT", "LEFT SEMI", "LEFT ANTI")) {
      val Seq(join) =
        joins(reported(spark.sql(s"SELECT * FROM points $kind JOIN parts ON t >= lo AND t < hi")))
      assert(join \ "condition" === JString("range"), kind)
    }
  }
}
