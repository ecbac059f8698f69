package io.github.skewext.join.range

import scala.util.{Failure, Success, Try}

import org.apache.spark.SparkConf
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{DataFrame, Row}

/** Values whose sums and differences overflow, or are special: no row and no error changes. */
class RangeOverflowSuite extends RangeJoinTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, "false")

  private val integers = Map("TINYINT" -> 8, "SMALLINT" -> 16, "INT" -> 32, "BIGINT" -> 64)

  private val floats = Seq("FLOAT", "DOUBLE")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    for ((name, bits) <- integers) {
      val half = BigInt(1) << (bits - 1)
      val quarter = half / 2
      view(
        name,
        for (at <- Seq(-half, -quarter, BigInt(0), quarter, half); by <- -3 to 3
          if at + by >= -half && at + by < half)
          yield (at + by).toString)
    }
    for (name <- floats) {
      val special = Seq(
        "'NaN'",
        "'Infinity'",
        "'-Infinity'",
        "-0.0",
        "0.0",
        "'3.4028234E38'",
        "'-3.4028234E38'")
      val close = Seq(
        "0.1",
        "0.3",
        "0.2",
        "1.0E7",
        "10000002",
        "1.0E-45",
        "16777216",
        "16777218",
        "2",
        "-1.9999999")
      view(name, special ++ close)
    }
    // The last microseconds that a timestamp has.
    view("TIMESTAMP", Seq("'2020-01-01 00:00:01'", "'2020-01-01 00:00:04'"))
    spark
      .sql(
        "SELECT x, id FROM v_timestamp UNION ALL SELECT timestamp_micros(9223372036854775807), 10 " +
          "UNION ALL SELECT timestamp_micros(-9223372036854775808), 11 UNION ALL SELECT null, 12")
      .createOrReplaceTempView("v_timestamp_extreme")
  }

  private def view(dataType: String, values: Seq[String]): Unit = {
    val rows = (values :+ "null").zipWithIndex.map { case (v, i) => s"($v, $i)" }
    val x =
      if (values.head.startsWith("-") && !values.head.contains("."))
        s"CAST(CAST(x AS DECIMAL(30, 0)) AS $dataType)"
      else s"CAST(x AS $dataType)"
    val typed = rows.map(_.replaceFirst("^\\((-?[0-9.E-]+),", "('$1',"))
    spark
      .sql(s"SELECT $x AS x, id FROM VALUES ${typed.mkString(", ")} AS t(x, id)")
      .createOrReplaceTempView(s"v_${dataType.toLowerCase(java.util.Locale.ROOT)}")
  }

  private def forms(t: String) = Seq(
    s"abs(a.x - b.x) <= CAST(2 AS $t)",
    s"a.x - b.x BETWEEN CAST(-1 AS $t) AND CAST(3 AS $t)",
    s"a.x - b.x >= CAST(-2 AS $t) AND CAST(100 AS $t) > a.x - b.x",
    s"a.x BETWEEN b.x - CAST(2 AS $t) AND b.x + CAST(2 AS $t)",
    s"a.x + CAST(1 AS $t) >= b.x AND b.x + CAST(1 AS $t) >= a.x")

  private def sql(t: String, on: String, joinType: String = "FULL", where: String = "true") = {
    val view = s"(SELECT * FROM v_${t.toLowerCase(java.util.Locale.ROOT)} WHERE $where)"
    s"SELECT /*+ BROADCAST(b) */ a.id, b.id FROM $view a $joinType JOIN $view b ON $on"
  }

  test("differences and sums that wrap around, and special numbers", Slow) {
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "false") {
      for (t <- integers.keys.toSeq.sorted ++ floats;
        on <- if (testSlow) forms(t) else some(3, forms(t))) {
        withClue(s"$t, $on: ")(checkRange(sql(t, on)))
      }
    }
  }

  private def outcome(rows: => Seq[Row]): Try[Seq[Row]] = Try(rows)

  /** The same, also where adaptive execution leaves few broadcast rows to Spark's join. */
  private def checkOutcome(query: String): Boolean = {
    withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "true")(checkOutcomeOf(spark.sql(query)))
    val df = spark.sql(query)
    val succeeds = checkOutcomeOf(df)
    assert(ranges(df).nonEmpty)
    succeeds
  }

  /** The rows are the same, or the error is. */
  private def checkOutcomeOf(df: DataFrame): Boolean = {
    val ours = outcome(df.collect().toSeq)
    (ours, outcome(rowsWhenOff(df))) match {
      case (Success(rows), Success(expected)) => assertSameRows(rows, expected, "Spark")
      case (Failure(_), Failure(_)) =>
      case (own, sparks) => fail(s"$own, but Spark: $sparks: ${df.queryExecution}")
    }
    ours.isSuccess
  }

  test("an overflow in ANSI mode is an error where it is one of Spark's", Slow) {
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "true") {
      val succeeded = for {
        t <- if (testSlow) Seq("INT", "BIGINT", "TINYINT") else Seq("INT")
        on <- forms(t)
        where <- Seq("x > 0", "x < 0 OR id = 0", "x < 1000")
      } yield checkOutcome(sql(t, on, "INNER", where))
      assert(succeeded.toSet === Set(true, false))
    }
  }

  test("a timestamp with an interval that has no room") {
    val on = "a.x BETWEEN b.x - INTERVAL 3 SECONDS AND b.x + INTERVAL 3 SECONDS"
    for (ansi <- Seq("true", "false"); where <- Seq("id < 10", "id <> 10", "id <> 11")) {
      withSQLConf(SQLConf.ANSI_ENABLED.key -> ansi) {
        checkOutcome(sql("TIMESTAMP_EXTREME", on, "LEFT", where))
      }
    }
  }
}
