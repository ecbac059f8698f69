package io.github.skewext.asof

import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{AnalysisException, Row}

/** Tolerances of as-of joins, against exact distances. */
class AsOfToleranceSuite extends AsOfTables {

  /**
   * Joins each time with each other one, under a key of their own, and compares with exact
   * distances.
   *
   * @param value SQL of the number of a time `t` or `bt`
   */
  private def checkTolerances(times: Seq[String], value: String, tolerances: Seq[(String, String)])(
      filters: String*): Unit = {
    val pairs = table(
      "k, t, bt",
      (for {
        (t, i) <- times.zipWithIndex
        (bt, j) <- times.zipWithIndex
      } yield s"(${i * times.size + j}, $t, $bt)").mkString(", "))
    def number(time: String) = s"CAST(${value.replace("?", time)} AS DECIMAL(38, 10))"
    for {
      (tolerance, exact) <- tolerances
      direction <- Seq("backward", "forward", "nearest")
      filter <- "true" +: filters
    } withClue(s"$tolerance, $direction, $filter: ") {
      val side = direction match {
        case "backward" => "bt <= t"
        case "forward" => "bt >= t"
        case _ => "true"
      }
      // Filters on the spine bound the versions.
      val df = asOf(pairs.select("k", "t").where(filter), "t", "inner")(
        Versions(pairs.select("k", "bt"), "bt", direction, tolerance))
      assertSameRows(
        df.select("k").collect().toSeq,
        pairs
          .where(filter)
          .where(s"$side AND abs(${number("t")} - ${number("bt")}) <= $exact")
          .select("k")
          .collect()
          .toSeq,
        "exact distances")
    }
  }

  test("a tolerance in days may be larger than the distance of any dates", Slow) {
    val dates = Seq("1901-01-01", "1969-12-31", "1970-01-01", "2024-01-01", "2024-02-01")
      .map(d => s"DATE'$d'") ++ Seq("2147483647", "-2147483648").map(d =>
      s"date_from_unix_date($d)")
    checkTolerances(
      dates,
      "unix_date(?)",
      Seq("2147483647" -> "2147483647", "INTERVAL '100000000' DAY" -> "100000000", "31" -> "31"))(
      "t >= DATE'1970-01-01'",
      "t <= DATE'1970-01-01'")
    for (ansi <- Seq("false", "true")) withSQLConf(SQLConf.ANSI_ENABLED.key -> ansi) {
      val tolerances = Seq("3000000000L", "9223372036854775807L", "99999999999999999999BD")
      checkTolerances(dates, "unix_date(?)", tolerances.map(t => t -> t))()
    }
  }

  test("between dates, a tolerance counts whole days", Slow) {
    val hours = Seq("INTERVAL '36' HOUR", "make_interval(0, 0, 0, 1, 12)")
    checkTolerances(
      (1 to 5).map(d => s"DATE'2024-01-0$d'"),
      "unix_date(?)",
      (hours :+ "1.5D").map(_ -> "1") :+ "INTERVAL '23' HOUR" -> "0")("t >= DATE'2024-01-03'")
    // Versions have other times.
    val day = table("k, t", "(1, DATE'2024-01-03')")
    for {
      tolerance <- hours
      (at, expected) <- Seq("01 12:00:00" -> 1, "01 11:59:59" -> 0, "04 12:00:00" -> 1)
      of <- Seq("TIMESTAMP", "TIMESTAMP_NTZ")
    } withClue(s"$tolerance $of $at: ") {
      val direction = if (at < "03") "backward" else "forward"
      val versions = table("k, bt", s"(1, $of'2024-01-$at')")
      val df = asOf(day, "t", "inner")(Versions(versions, "bt", direction, tolerance))
      assert(df.count() === expected)
    }
    val endOfMonth = table("k, t", "(1, DATE'2024-03-31')")
    for ((at, expected) <- Seq("27" -> 1, "26" -> 0)) {
      val versions = table("k, bt", s"(1, DATE'2024-02-$at')")
      val v = Versions(versions, "bt", tolerance = "make_interval(0, 1, 0, 1, 30)")
      assert(asOf(endOfMonth, "t", "inner")(v).count() === expected, at)
    }
  }

  test("a tolerance is added in the type in which times are compared") {
    for {
      (time, tolerance, near, far) <- Seq(
        ("2147483647", "5", "2147483652L", "2147483653L"),
        ("127Y", "5Y", "132", "133"),
        ("32767S", "5", "32772L", "9000000000L"),
        ("2147483647", "5", "2147483652D", "9e9D"),
        ("float('3e38')", "float('1e38')", "3.5e38D", "9e38D"))
      (version, expected) <- Seq(near -> 1, far -> 0)
    } withClue(s"$time $version: ") {
      val versions = table("k, bt", s"(1, $version)")
      val df = asOf(table("k, t", s"(1, $time)"), "t", "inner")(
        Versions(versions, "bt", "forward", tolerance))
      assert(df.count() === expected)
    }
  }

  test("a tolerance of decimals is exact", Slow) {
    val times = Seq("0", "0.5", "-0.5", "1", "0.500000001", "99999999999999999999")
    checkTolerances(
      times.map(t => s"CAST($t AS DECIMAL(38, 18))"),
      "?",
      Seq("0.5BD", "1", "99999999999999999998BD").map(t => t -> t))()
    // Spark's difference has the scale 17.
    val nines = "0.999999999999999999BD"
    def found(spineTime: String, time: String) =
      asOf(table("k, t", s"(1, $spineTime)"), "t", "inner")(
        Versions(table("k, bt", s"(1, $time)"), "bt", "nearest", nines)).count()
    assert(found("1L", "0L") === 0)
    def decimal(n: String) = s"CAST($n AS DECIMAL(38, 18))"
    assert(found(decimal("1"), decimal("0")) === 0)
    assert(found(decimal("1"), decimal("0.000000000000000001")) === 1)
    assert(found(decimal("0"), decimal("0.999999999999999999")) === 1)
    // No two times are so far apart.
    val decimals = spine.withColumn("t", expr(decimal("t")))
    def rows(versions: Versions) = asOf(decimals, "t")(versions).collect().toSet
    assert(
      rows(Versions(prices, "at", tolerance = "1" + "0" * 20 + "BD")) ===
        rows(Versions(prices, "at")))
  }

  test("a floating-point tolerance is not rounded", Slow) {
    val epoch = 1700000000000000000L
    for {
      (spineTime, time, tolerance, isFound) <- Seq[(Any, Any, String, Boolean)](
        ("0.4BD", "0.3BD", "0.1D", true),
        ("0.4BD", "0.3BD", "float('0.1')", true),
        ("0.4BD", "0.2BD", "0.1D", false),
        (s"${epoch + 100}L", s"${epoch - 1000000000L}L", "1e9D", false),
        (s"${epoch + 228}L", s"${epoch + 128}L", "100.0D", true),
        ("9007199254740993L", "9007199254740990L", "2.5D", false),
        ("16777217", "16777216", "float('0.5')", false),
        ("16777217", "16777216", "float('1.5')", true))
      (at, of, direction) <- Seq((spineTime, time, "backward"), (time, spineTime, "forward"))
    } withClue(s"$spineTime, $time, $tolerance, $direction: ") {
      val rows = asOf(table("k, t", s"(1, $at)"), "t", "inner")(
        Versions(table("k, bt", s"(1, $of)"), "bt", direction, tolerance))
      assert(rows.count() === (if (isFound) 1 else 0))
      assert(rows.where(s"t = $at").count() === (if (isFound) 1 else 0))
    }
  }

  test("floating-point times are compared by their distance", Slow) {
    val r = new scala.util.Random(7)
    def near(of: String): Seq[(String, String, String, Boolean)] = {
      // Times and tolerances of few digits, whose sums and differences are rounded.
      val cases = Seq.fill(300) {
        def digits = BigDecimal(r.nextInt(4000), 1 + r.nextInt(3)).toString
        val (t, bt) = (digits, digits)
        val tolerance = (BigDecimal(t) - BigDecimal(bt)).abs.toString
        (t, bt, tolerance)
      }
      cases.map { case (t, bt, tolerance) =>
        val isNear =
          if (of == "double") (t.toDouble - bt.toDouble).abs <= tolerance.toDouble
          else (t.toFloat - bt.toFloat).abs <= tolerance.toFloat
        (s"$of('$t')", s"$of('$bt')", tolerance, isNear)
      }
    }
    // As pandas and Polars, which find 0.0010000000000012221.
    val known = Seq(("double('30.0')", "double('29.999')", "0.001", false))
    for (of <- Seq("double", "float")) {
      val cases = if (of == "double") known ++ near(of) else near(of)
      assert(cases.map(_._4).distinct.size === 2)
      // A tolerance is one for all rows, so tolerances are tables of versions.
      val groups = cases.groupBy(_._3).toSeq.take(if (testAll) 600 else 60)
      for (((tolerance, alike), n) <- groups.zipWithIndex) {
        val rows = alike.zipWithIndex.map { case ((t, bt, _, _), i) => s"($i, $t, $bt)" }
        val pairs = table("k, t, bt", rows.mkString(", "))
        val expected = alike.zipWithIndex.collect { case ((_, _, _, true), i) => Row(i) }
        val ends = alike.map(_._1).distinct
        val ways = for {
          literal <- Seq(s"${tolerance}D", s"${tolerance}BD")
          // Filters on the spine bound the versions.
          filter <-
            "true" +: (if (ends.size == 1) Seq(s"t >= ${ends.head}", s"t <= ${ends.head}") else Nil)
        } yield (literal, filter)
        for ((literal, filter) <- if (testAll) ways else Seq(ways(n % ways.size))) {
          val df = asOf(pairs.select("k", "t").where(filter), "t", "inner")(
            Versions(pairs.select("k", "bt"), "bt", "nearest", literal))
          withClue(s"$alike $literal $filter: ")(checkAnswer(df.select("k"), expected))
        }
      }
    }
  }

  test("an infinite tolerance is none") {
    for ((of, suffix) <- Seq("double" -> "D", "float" -> "F")) {
      val infinity = s"$of('Infinity')"
      val times = s"(1, 1$suffix), (2, $infinity), (3, $of('-Infinity')), (4, $of('NaN'))"
      val versions = s"(1, $of('-Infinity')), (2, 0$suffix), (3, $of('-Infinity')), (4, 0$suffix)"
      def joined(tolerance: String) = asOf(table("k, t", times), "t", "inner")(
        Versions(table("k, bt", versions), "bt", "nearest", tolerance))
      checkAnswer(joined(infinity).select("k"), (1 to 4).map(Row(_)))
      checkAnswer(joined(s"1$suffix").select("k"), Row(3))
      val wrong = intercept[AnalysisException](joined(s"$of('NaN')"))
      assert(wrong.getMessage.contains("tolerance of input 1 (counting from 0) is NaN"))
    }
    assert(
      intercept[AnalysisException](
        asOf(spine.selectExpr("k", "DATE'2020-01-01' AS t"), "t")(
          Versions(
            prices.selectExpr("k", "DATE'2020-01-01' AS at"),
            "at",
            tolerance = "double('Infinity')"))).getMessage
        .contains("does not fit times of type DATE"))
  }
}
