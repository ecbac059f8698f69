package io.github.skewext.asof

import scala.collection.JavaConverters._

import io.github.skewext.StoredTables

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.IsNotNull
import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.execution.FileSourceScanExec

/** Filters on the time of the spine that reach the versions, against a filter above the join. */
class AsOfTimeBoundsSuite extends AsOfTest with StoredTables {

  // The filters are the same, and compiling takes longer than running.
  override protected def generatesCode: Boolean = testAll

  /**
   * A type of times.
   *
   * @param time SQL of the time of a row by its number `n`
   * @param from SQL of the filter's bounds
   */
  private case class Times(name: String, time: String, tolerance: String, from: String, to: String)

  // Clocks go back on 2020-11-01 in the time zone of the tests, and months have different lengths.
  private val times = Seq(
    Times("int", "cast(n AS int)", "7", "20", "60"),
    Times("double", "if(n % 19 = 0, double('NaN'), n / 4)", "2.5D", "5D", "15D"),
    Times(
      "date",
      "date_add(DATE'2020-01-20', cast(n AS int))",
      "INTERVAL 1 MONTH",
      "DATE'2020-02-20'",
      "DATE'2020-03-31'"),
    Times(
      "timestamp",
      "TIMESTAMP'2020-10-31 12:00:00' + make_dt_interval(0, 0, n * 30)",
      "INTERVAL 1 DAY",
      "TIMESTAMP'2020-11-01 01:45:00'",
      "TIMESTAMP'2020-11-02 01:15:00'"),
    Times(
      "timestamp_ntz",
      "TIMESTAMP_NTZ'2020-02-27 12:00:00' + make_dt_interval(0, n)",
      "INTERVAL 1 MONTH",
      "TIMESTAMP_NTZ'2020-02-29 01:00:00'",
      "TIMESTAMP_NTZ'2020-03-01 00:00:00'"))

  private def rows(i: Int, of: Times): DataFrame = stored(
    s"${of.name}$i",
    spark
      .range(0, 100, 1, 2)
      .selectExpr(s"id * ${7 + 4 * i} % 101 AS n", "id % 3 AS k", "id")
      .selectExpr("k", s"${of.time} AS t$i", s"id AS x$i"))

  /** The number of filters on the time of versions. */
  private def bounds(df: DataFrame, time: String): Int =
    df.queryExecution.optimizedPlan
      .collect { case Filter(condition, _) => condition }
      .flatMap(SparkAsOfCondition.conjuncts)
      .count(c => c.references.exists(_.name == time) && !c.isInstanceOf[IsNotNull])

  private def joined(spine: DataFrame, of: Times, direction: String, tolerance: String) =
    asOf(spine, "t0")(Versions(rows(1, of), "t1", direction, tolerance))

  // Each direction with and without a tolerance, and both with each type.
  private val cases = covering(for {
    of <- times
    direction <- Seq("backward", "forward", "nearest")
    isWithin <- Seq(true, false)
    filter <- 0 until 4
  } yield ((of, direction), (direction, isWithin), (of, isWithin), filter)).groupBy(_._1._1)

  for (of <- times) test(s"versions are filtered by times of type ${of.name}", Slow) {
    val filters = Seq(
      (s"t0 >= ${of.from} AND t0 < ${of.to}", 1, 1),
      (s"t0 > ${of.from}", 1, 0),
      (s"t0 <= ${of.to}", 0, 1),
      (s"t0 = ${of.from}", 1, 1))
    for ((_, (direction, isWithin), _, i) <- cases(of)) withClue(s"$direction $isWithin $i: ") {
      val tolerance = if (isWithin) of.tolerance else null
      val (filter, lower, upper) = filters(i)
      val spine = rows(0, of)
      val df = joined(spine.where(filter), of, direction, tolerance)
      val all = joined(spine, of, direction, tolerance)
      checkAnswer(df, spark.createDataFrame(all.collect().toSeq.asJava, all.schema).where(filter))
      val expected = direction match {
        case "backward" => upper + (if (tolerance == null) 0 else lower)
        case "forward" => lower + (if (tolerance == null) 0 else upper)
        case _ => if (tolerance == null) 0 else lower + upper
      }
      assert(bounds(df, "t1") === expected, df.queryExecution.optimizedPlan)
    }
  }

  test("filters with a tolerance are pushed into the scan of the versions") {
    val expected = Seq(
      ("int", "13", "60"),
      ("date", "2020-01-20", "2020-03-31"),
      // A month and the slack of four days before.
      ("timestamp_ntz", "2020-01-25T01:00", "2020-03-01T00:00"))
    for ((name, first, last) <- expected; of = times.find(_.name == name).get) {
      val spine = rows(0, of).where(s"t0 BETWEEN ${of.from} AND ${of.to}")
      val plan = joined(spine, of, "backward", of.tolerance).queryExecution.executedPlan
      val pushed = collectWithSubqueries(plan) {
        case scan: FileSourceScanExec if scan.output.exists(_.name == "t1") =>
          scan.metadata("PushedFilters")
      }
      assert(pushed.size === 1)
      assert(pushed.head.contains(s"GreaterThanOrEqual(t1,$first)"), name)
      assert(pushed.head.contains(s"LessThanOrEqual(t1,$last)"), name)
    }
  }

  test("a bound that overflows with the tolerance filters nothing") {
    val ints = times.head
    for ((direction, filter) <- Seq(
        "backward" -> s"t0 > ${Int.MinValue + 3}",
        "forward" -> s"t0 < ${Int.MaxValue - 3}")) {
      val df = joined(rows(0, ints).where(filter), ints, direction, ints.tolerance)
      val all = joined(rows(0, ints), ints, direction, ints.tolerance)
      checkAnswer(df, all.collect().toSeq)
      assert(bounds(df, "t1") === 0, direction)
    }
  }

  test("a bound that sources cannot convert filters nothing", Slow) {
    for ((name, filter, direction, tolerance) <- Seq(
        ("date", "t0 > DATE'2020-02-20'", "backward", "2147483647"),
        ("date", "t0 >= DATE'0001-01-01'", "backward", "7"),
        ("date", "t0 <= DATE'9999-12-31'", "forward", "7"),
        ("timestamp", "t0 <= TIMESTAMP'9999-12-31 00:00:00'", "forward", "INTERVAL '7' DAY"),
        (
          "timestamp",
          "t0 > TIMESTAMP'1971-01-01 00:00:00'",
          "backward",
          "INTERVAL '106751991' DAY"))) {
      val of = times.find(_.name == name).get
      val df = joined(rows(0, of).where(filter), of, direction, tolerance)
      val ids = rows(0, of).where(filter).select("x0").collect().map(_.getLong(0)).toSet
      val all = joined(rows(0, of), of, direction, tolerance).collect()
      checkAnswer(df, all.filter(row => ids(row.getAs[Long]("x0"))).toSeq)
      assert(bounds(df, "t1") === 0, name)
    }
  }

  test("versions are filtered by months of different lengths", Slow) {
    // The 28th to the 31st of March are the 28th of February, a month before.
    val hours = stored(
      "hours",
      spark
        .range(0, 24 * 70, 1, 2)
        .selectExpr(
          "id AS k",
          "TIMESTAMP_NTZ'2023-01-25 00:00:00' + make_dt_interval(0, id) AS t0"))
    for {
      (moved, filters) <- Seq(
        "-" -> Seq(
          "t0 >= TIMESTAMP_NTZ'2023-03-30 23:00:00'",
          "t0 > TIMESTAMP_NTZ'2023-03-29 12:00:00'"),
        "+" -> Seq(
          "t0 <= TIMESTAMP_NTZ'2023-01-29 01:00:00'",
          "t0 < TIMESTAMP_NTZ'2023-01-30 12:00:00'"))
      filter <- filters
      direction <- Seq(if (moved == "-") "backward" else "forward", "nearest")
    } {
      val versions = hours.selectExpr("k", s"t0 $moved INTERVAL 1 MONTH AS t1", "k AS x1")
      val spine = hours.where(filter)
      val df =
        asOf(spine, "t0")(
          Versions(stored(s"months$moved", versions), "t1", direction, "INTERVAL 1 MONTH"))
      assert(bounds(df, "t1") > 0)
      assert(df.where("x1 = k").count() === spine.count(), s"$direction $filter")
    }
  }

  test("versions are not filtered by other columns, or by a time of another type") {
    val ints = times.head
    val spine = rows(0, ints)
    assert(bounds(joined(spine.where("x0 > 20"), ints, "backward", null), "t1") === 0)
    val wide =
      joined(spine.where("t0 < 50"), Times("bigint", "n", "7L", "20L", "60L"), "backward", null)
    wide.collect()
    assert(bounds(wide, "t1") === 0)
  }
}
