package io.github.skewext.asof

import java.lang.management.ManagementFactory
import java.nio.file.Files

import scala.util.Random

import io.github.skewext.rules.{LoadedExtension, SkewConf}

import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, Project}
import org.apache.spark.sql.execution.SortExec
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions}
import org.apache.spark.sql.types.{DoubleType, IntegerType}
import org.apache.spark.sql.{AnalysisException, Column, DataFrame, Encoders, Row}

/** As-of joins, against every pair of rows of a key. */
class AsOfJoinSuite extends AsOfTest {

  /**
   * A type of times.
   *
   * @param values SQL of an array
   * @param distance of the times t and bt, in a type that holds it; none if the type has no distances
   */
  private case class Times(
      name: String,
      values: String,
      tolerance: String,
      distance: Option[String])

  private def hours(start: String): String =
    s"transform(sequence(0, 12), i -> $start + make_dt_interval(0, i * 7))"

  private val Exact = Some("abs(CAST(t AS DECIMAL(38, 2)) - CAST(bt AS DECIMAL(38, 2)))")

  private val types = Seq(
    Times("int", "array(-5, -3, 0, 1, 2, 7, 8, 11)", "3", Exact),
    Times(
      "bigint",
      "array(-9223372036854775808L, -9223372036854775807L, -5L, 0L, 3L, 9223372036854775807L)",
      "4L",
      Exact),
    Times(
      "double",
      "array(double('NaN'), -0.0D, 0.0D, 1.5D, 2.5D, -3.0D, double('Infinity'), double('-Infinity'))",
      "1.5D",
      Some("if(t = bt, 0D, abs(t - bt))")),
    Times("decimal", "array(-1.25BD, 0.00BD, 0.50BD, 0.75BD, 2.00BD, 7.25BD)", "0.5BD", Exact),
    Times(
      "date",
      "array(DATE'1901-01-01', DATE'2020-01-01', DATE'2020-01-02', DATE'2020-01-05', DATE'2020-02-01')",
      "INTERVAL 3 DAYS",
      Some("abs(datediff(t, bt))")),
    // Daylight saving time begins in between.
    Times(
      "timestamp",
      hours("TIMESTAMP'2020-03-07 01:00:00'"),
      "INTERVAL 1 DAY",
      Some("abs(unix_micros(t) - unix_micros(bt))")),
    Times(
      "timestamp before 1970",
      hours("TIMESTAMP'1883-11-17 01:00:00'"),
      "INTERVAL 10 HOURS",
      Some("abs(unix_micros(t) - unix_micros(bt))")),
    Times(
      "timestamp_ntz",
      hours("TIMESTAMP_NTZ'2020-03-07 01:00:00'"),
      "INTERVAL 20 HOURS",
      Some("abs(t - bt)")),
    Times("string", "array('', 'a', 'aa', 'b', 'zz', 'Z')", null, None))

  /** Rows that are random, but always the same: keys from 1, some null, and the times. */
  private def rows(seed: Int, n: Int, keys: Int, times: Times, time: String): DataFrame = {
    def random(salt: Int, below: Int) = pmod(hash(col("id"), lit(seed), lit(salt)), lit(below))
    val values = expr(times.values)
    spark
      .range(0, n, 1, 2)
      .select(
        col("id").as(s"id$seed"),
        when(random(1, 8) > 0, random(2, keys) + 1).as("k"),
        when(random(3, 8) > 0, element_at(values, (random(4, 1000) % size(values) + 1).cast("int")))
          .as(time),
        when(random(5, 5) > 0, random(6, 6)).as(s"x$seed"),
        when(random(7, 5) > 0, random(8, 3).cast("string")).as(s"y$seed"))
  }

  /** One version of each row of the spine, by a join of all pairs of a key. */
  private def allPairs(spine: DataFrame, v: Versions, times: Times, how: String): DataFrame = {
    val t = col("t")
    val bt = col("bt")
    val side: Column = (v.direction, v.exact) match {
      case ("backward", true) => bt <= t
      case ("backward", false) => bt < t
      case ("forward", true) => bt >= t
      case ("forward", false) => bt > t
      case (_, true) => lit(true)
      case (_, false) => bt =!= t
    }
    // An overflow bounds nothing.
    val within =
      if (v.tolerance == null) lit(true)
      else
        coalesce(bt >= expr(s"try_subtract(t, ${v.tolerance})"), lit(true)) &&
        coalesce(bt <= expr(s"try_add(t, ${v.tolerance})"), lit(true))
    val first = v.direction match {
      case "backward" => Seq(bt.desc)
      case "forward" => Seq(bt)
      // Infinity is as far from each other number, and the adjacent one counts.
      case _ => Seq(expr(times.distance.get), bt > t, when(bt <= t, bt).desc, bt)
    }
    val ties = Seq("id2", "x2", "y2").map(col(_).desc_nulls_last)
    val found = spine
      .join(v.df, "k")
      .where(side && within && t.isNotNull && bt.isNotNull)
      .withColumn("n", row_number().over(Window.partitionBy("id1").orderBy((first ++ ties): _*)))
      .where("n = 1")
      .select("id1", "id2", "x2", "y2")
    spine.join(found, Seq("id1"), how).select("id1", "k", "x1", "id2", "x2", "y2")
  }

  /** Hash tables, sorts, hash tables for which there is too little memory, and one hash for all. */
  private val groupings = Seq(
    Nil,
    Seq(SkewConf.MULTI_JOIN_GROUPING.key -> "sort"),
    Seq(SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key -> "5"),
    Seq(SkewConf.MULTI_JOIN_HASH_BITS.key -> "0"))

  /** The same rows in two files. */
  private def stored(df: DataFrame): DataFrame = {
    val path = Files.createTempDirectory("as-of").toString
    df.write.mode("overwrite").parquet(path)
    spark.read.parquet(path)
  }

  test("each direction, tolerance and type of time, as by all pairs of rows of a key") {
    val cases = for {
      times <- types
      direction <- Seq("backward", "forward", "nearest")
      if direction != "nearest" || times.distance.isDefined
      exact <- Seq(true, false)
      tolerance <- Seq(null, times.tolerance).distinct
    } yield (times, (direction, exact), tolerance)
    for (((times, (direction, exact), tolerance), i) <- covering(cases).zipWithIndex) {
      val how = if (i % 3 == 0) "inner" else "left"
      withClue(s"${times.name}, $direction, exact $exact, tolerance $tolerance, $how: ") {
        // Without null keys, blocks of columns are taken as a whole, with their null times.
        def source(df: DataFrame) = if (i % 2 == 0) df else stored(df.where("k IS NOT NULL"))
        val spine = source(rows(1, 60, 3, times, "t"))
        // Few times, so that there are ties; a version may also occur twice.
        val versions = source(rows(2, 40, 4, times, "bt").withColumn("id2", col("id2") % 20))
        val v = Versions(versions, "bt", direction, tolerance, exact)
        val isBroadcast = i % 5 < 2
        val given = if (isBroadcast) v.copy(df = broadcast(versions)) else v
        withSQLConf(groupings(i % groupings.size): _*)(withAdaptive {
          val df = asOf(spine, "t", how)(given)
          assertSameRows(
            df.select("id1", "k", "x1", "id2", "x2", "y2").collect().toSeq,
            allPairs(spine, v, times, how).collect().toSeq,
            "all pairs")
          assert(asOfOperators(df).size === 1)
          assert(exchanges(df).size === (if (isBroadcast) 0 else 2))
        })
      }
    }
  }

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

  test("a tolerance in days may be larger than the distance of any dates") {
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

  test("between dates, a tolerance counts whole days") {
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

  test("a tolerance of decimals is exact") {
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

  private def checkSameWhenOff(df: DataFrame): Unit =
    assertSameRows(df.collect().toSeq, rowsWhenOff(df), "with skewext off")

  private def spine =
    table("id, k, t", "(1, 1, 5), (2, 1, 9), (3, 2, 5), (4, null, 5), (5, 1, null)")
  private def prices =
    table(
      "k, at, price",
      "(1, 4, 10), (1, 5, 20), (1, 7, 30), (2, 6, 40), (null, 1, 50), (1, null, 60)")

  test("the columns and rows of one join") {
    val df = asOf(spine, "t")(Versions(prices, "at"))
    assert(df.columns === Seq("id", "k", "t", "at", "price"))
    checkAnswer(
      df,
      Seq(
        Row(1, 1, 5, 5, 20),
        Row(2, 1, 9, 7, 30),
        Row(3, 2, 5, null, null),
        Row(4, null, 5, null, null),
        Row(5, 1, null, null, null)))
    checkAnswer(
      asOf(spine, "t", "inner")(
        Versions(prices, "at"),
        Versions(prices.toDF("k", "b", "p"), "b", "forward")),
      Seq(Row(1, 1, 5, 5, 20, 5, 20)))
  }

  test("tables of other keys and types join the spine, too") {
    val people = table("id, since, name", "(1L, 0L, 'a'), (1L, 6L, 'b'), (2L, 9L, 'c')")
    val df = asOf(spine, "t", suffixes = Seq(null, "_1", "_2", "_3"))(
      Versions(prices, "at"),
      Versions(people, "since", keys = Seq("id"), spineKeys = Seq("id")),
      Versions(prices, "at", "forward"))
    assert(
      df.columns === Seq("id", "k", "t", "at_1", "price_1", "since", "name", "at_3", "price_3"))
    checkAnswer(
      df.where("id < 4"),
      Seq(
        Row(1, 1, 5, 5, 20, 0L, "a", 5, 20),
        Row(2, 1, 9, 7, 30, 9L, "c", null, null),
        Row(3, 2, 5, null, null, null, null, 6, 40)))
    // The tables of one key and time type are one operator.
    assert(joins(df).map(_.children.size).toSet === Set(2, 3))
  }

  test("generated code reads the columns that the query uses") {
    inGeneratedCode {
      val df = asOf(spine, "t")(Versions(prices, "at"))
      checkAnswer(df.selectExpr("id + price"), Seq(21, 32, null, null, null).map(Row(_)))
      checkAnswer(df.groupBy("k").agg(sum("price")), Seq(Row(1, 50), Row(2, null), Row(null, null)))
      checkAnswer(df.where("price > 20").select("id"), Row(2))
      assert(df.count() === 5)
    }
  }

  test("ties: the greatest of the named columns, or else of all, whatever order rows arrive in") {
    val versions = Random.shuffle(
      Seq(Row(1, 3, null, 9), Row(1, 3, 2, 1), Row(1, 3, 2, 7), Row(1, 3, 1, 8), Row(1, 2, 5, 5)))
    val shuffled = frame("k INT, at INT, a INT, b INT", partitions = 3)(versions: _*)
    def found(ties: Seq[Column]) =
      asOf(spine.where("id = 1"), "t")(Versions(shuffled, "at", ties = ties)).select("a", "b")
    checkAnswer(found(null), Row(2, 7))
    checkAnswer(found(Seq(col("b"))), Row(null, 9))
    checkAnswer(found(Seq(col("a").asc_nulls_last, col("b"))), Row(1, 8))
    checkAnswer(found(Seq(expr("-b"))), Row(2, 1))
    // The order decides nothing here, and still the row is always the same.
    val rows = (1 to 4).map(i => found(Seq(col("k"))).repartition(i).collect().toSeq)
    assert(rows.distinct.size === 1)
  }

  test("a map does not decide which version counts") {
    val maps = prices.withColumn("m", map(col("k"), col("price")))
    assert(
      intercept[AnalysisException](asOf(spine, "t")(Versions(maps, "at"))).getMessage
        .contains("cannot be ordered by column 'm' of type MAP<INT, INT>"))
    val df = asOf(spine, "t")(Versions(maps.where("k > 0"), "at", ties = Seq(col("price"))))
    checkAnswer(df.where("id = 1").select("m"), Row(Map(1 -> 20)))
  }

  test("bucketed inputs need no exchange, and the output keeps the partitions of the spine") {
    withTable("s", "p") {
      spine.write.bucketBy(4, "k").saveAsTable("s")
      prices.write.bucketBy(4, "k").saveAsTable("p")
      val df = asOf(sql("SELECT * FROM s"), "t")(Versions(sql("SELECT * FROM p"), "at"))
      checkAnswer(df.groupBy("k").agg(sum("price")), Seq(Row(1, 50), Row(2, null), Row(null, null)))
      assert(exchanges(df).isEmpty && exchanges(df.groupBy("k").count()).isEmpty)
    }
  }

  test("only columns that are needed are read, and predicates reach the inputs") {
    withTable("s", "p") {
      spine.withColumn("unused", lit(1)).write.saveAsTable("s")
      prices.withColumn("unused2", lit(1)).write.saveAsTable("p")
      val df = asOf(sql("SELECT * FROM s"), "t")(
        Versions(sql("SELECT * FROM p"), "at", ties = Seq(col("price"))))
        .where("k = 1 AND id > 1 AND price > 20")
        .select("id", "price")
      checkAnswer(df, Row(2, 30))
      val plan = df.queryExecution.optimizedPlan
      val join = plan.collectFirst { case j: MultiAsOfJoin => j }.get
      assert(join.output.map(_.name) === Seq("id", "k", "t", "k", "at", "price"))
      val filters = join.children.map(_.collect { case f: Filter => f.condition.sql }.mkString)
      assert(filters.forall(_.contains("k = 1")), plan)
      assert(filters.head.contains("id > 1") && !filters(1).contains("price > 20"), plan)
      // A filter below the spine reaches the versions, too.
      val below =
        asOf(sql("SELECT * FROM s WHERE k = 2"), "t")(Versions(sql("SELECT * FROM p"), "at"))
      assert(below.queryExecution.optimizedPlan.toString.split("k#\\d+ = 2").size === 3)
    }
  }

  test("columns and tables that only decide ties, or nothing, are not read") {
    withTable("s", "p") {
      spine.write.saveAsTable("s")
      table(
        "k, at, a, b, c",
        "(1, 5, 1, 2, 9), (1, 5, 2, 1, 8), (1, 5, 2, 1, 7), (2, 1, 0, 0, 0)").write
        .saveAsTable("p")
      def df(how: String) =
        asOf(sql("SELECT * FROM s"), "t", how)(Versions(sql("SELECT * FROM p"), "at"))
      def latestOf = latest(sql("SELECT * FROM p"), "k")(col("at"))()
      def read(df: DataFrame): Seq[Set[String]] = {
        checkSameWhenOff(df)
        df.queryExecution.sparkPlan.collectLeaves().map(_.output.map(_.name).toSet)
      }
      assert(read(df("left").select("id", "c")).last === Set("k", "at", "a", "b", "c"))
      assert(read(df("left").select("id", "b")).last === Set("k", "at", "a", "b"))
      assert(read(df("left").where("a > 1").select("id")).last === Set("k", "at", "a"))
      assert(read(df("left").groupBy("at").count()).last === Set("k", "at"))
      assert(read(df("left").select("id")) === Seq(Set("id")))
      assert(read(df("inner").select("id")).last === Set("k", "at"))
      assert(read(latestOf.select("k", "a")) === Seq(Set("k", "at", "a")))
    }
  }

  test("unread columns of an order decide where equal values differ") {
    def zeros(first: Int, second: Int) =
      table("k, t, d, seq", s"(1, 1, 0.0D, $first), (1, 1, -0.0D, $second)")
    val spine = table("k, at", "(1, 2)")
    for ((first, second, expected) <- Seq((1, 2, "-0.0"), (2, 1, "0.0"))) {
      val versions = zeros(first, second)
      val byTies = latest(versions, "k")(col("t"))(col("d"), col("seq"))
      val joined =
        asOf(spine, "at")(Versions(versions, "t", ties = Seq(col("d"), col("seq"))))
      for (df <- Seq(
          byTies,
          joined,
          latest(versions, "k")(col("t"))(),
          asOf(spine, "at")(Versions(versions, "t"))))
        checkAnswer(df.selectExpr("cast(d AS string)"), Seq(Row(expected)))
    }
  }

  test("the time to plan wide tables is linear in their columns") {
    def wide(prefix: String) = {
      val columns = (0 until 10000).map(i => AttributeReference(s"$prefix$i", IntegerType)())
      val double = AttributeReference(s"${prefix}d", DoubleType)()
      LocalRelation((columns :+ double).map(_.withNullability(true)))
    }
    val versions = AsOfTable(wide("b"), Seq("a0"), Seq("b0"), "b1", "backward", None, true, None)
    // The time of this thread alone, as others may be busy.
    val clock = ManagementFactory.getThreadMXBean
    val begin = clock.getCurrentThreadCpuTime
    val joined = new AsOfJoinBuilder(spark, wide("a"), Seq(versions), "a1", "left", None).build()
    val read = joined.output.filter(a => a.name == "a0" || a.name == "bd")
    val pruned =
      PruneAsOfInputs(Project(read, joined.collectFirst { case join: MultiAsOfJoin => join }.get))
    val seconds = (clock.getCurrentThreadCpuTime - begin) / 1e9
    // Equal doubles may differ, so all columns decide.
    assert(pruned.collect { case join: MultiAsOfJoin => join.ties.map(_.size) } === Seq(Seq(9999)))
    assert(seconds < 10)
  }

  test("100,000 versions and rows of one key") {
    val n = 100000
    val versions = spark.range(n).selectExpr("1 k", "id * 2 at", "id v")
    val rows = spark.range(n).selectExpr("1 k", "id * 2 + 1 t", "repeat('x', 20) text")
    val df = asOf(rows, "t")(
      Versions(versions, "at"),
      Versions(versions.toDF("k", "b", "w"), "b", "nearest"))
      .agg(count("*"), sum(col("t") - col("at")), max(col("v") - col("w")))
    checkAnswer(df, Row(n, n, 0))
  }

  test("a session that registers late") {
    val bare = TestSessions.withoutExtensions(spark)
    SqlInternals.withActive(bare) {
      val a = bare.sql("SELECT 1 k, 5 t")
      val df = asOf(a, "t")(Versions(bare.sql("SELECT 1 k, 4 at, 'x' v"), "at"))
      assert(!LoadedExtension.isIn(bare))
      assert(df.collect().toSeq === Seq(Row(1, 5, 4, "x")))
      bare.conf.set(Off._1, Off._2)
      assert(again(df).collect().toSeq === Seq(Row(1, 5, 4, "x")))
    }
  }

  test("bad arguments have an error that names them") {
    def fails(parts: String*)(df: => DataFrame): Unit = {
      val message = intercept[AnalysisException](df).getMessage
      parts.foreach(part => assert(message.contains(part)))
    }
    val v = Versions(prices, "at")
    fails("no column 'x'", "[id, k, t]")(asOf(spine, "x")(v))
    fails("Input 1", "no column 'x'", "[k, at, price]")(asOf(spine, "t")(v.copy(time = "x")))
    fails("'left' or 'inner', not 'full'")(asOf(spine, "t", "full")(v))
    fails("at least one table")(asOf(spine, "t")())
    fails("no direction 'up'", "backward, forward, nearest")(
      asOf(spine, "t")(v.copy(direction = "up")))
    fails("negative", "-1")(asOf(spine, "t")(v.copy(tolerance = "-1")))
    fails("no constant")(asOf(spine, "t")(v.copy(tolerance = "price")))
    fails("does not fit times of type INT")(asOf(spine, "t")(v.copy(tolerance = "INTERVAL 1 DAY")))
    fails("have a column 'at'", "suffixes=")(asOf(spine, "t")(v, v))
    fails("suffixes for 1")(asOf(spine, "t", suffixes = Seq("a"))(v))
    fails("list of key columns is empty")(asOf(spine, "t")(v.copy(keys = Nil, spineKeys = Nil)))
    fails("2 key columns")(asOf(spine, "t")(v.copy(keys = Seq("k", "price"))))
    val words = Versions(prices.selectExpr("k", "CAST(at AS STRING) at"), "at")
    val named = spine.selectExpr("k", "CAST(t AS STRING) t")
    fails("direction 'nearest'", "STRING have no differences")(
      asOf(named, "t")(words.copy(direction = "nearest")))
    fails("a tolerance", "STRING have no differences")(
      asOf(named, "t")(words.copy(tolerance = "1")))
    val dates = Versions(prices.selectExpr("k", "array(DATE'2020-01-01') at"), "at")
    fails("The time 't' of the spine, of type INT", "ARRAY<DATE>")(asOf(spine, "t")(dates))
    val stream = spark.readStream.format("rate").load().selectExpr("value k", "timestamp at")
    fails("Input 1", "streaming")(asOf(spine, "t")(Versions(stream, "at")))
  }

  test("the latest row of each key, as by row_number") {
    val data = rows(1, 200, 5, types.head, "t")
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

  test("the latest rows of sorted rows are sorted") {
    val sorted =
      rows(1, 200, 5, types.head, "t").repartition(col("k")).sortWithinPartitions("k", "t")
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

  test("table functions are the same") {
    withTempView("s", "p") {
      spine.createOrReplaceTempView("s")
      prices.createOrReplaceTempView("p")
      val v = Versions(prices, "at")
      for ((arguments, same) <- Seq(
          "keys => 'k', time => 't', times => 'at'" -> v,
          "'k', 't', 'at', 'nearest', 2, false, array('price DESC')" ->
            v.copy(direction = "nearest", tolerance = "2", exact = false, ties = Seq(col("price"))),
          "keys => array(array('k')), spine_keys => array(array('id')), time => 't', " +
            "times => array('at'), tolerances => struct(3), ties => array(NULL)" ->
            v.copy(tolerance = "3", spineKeys = Seq("id")))) {
        val df = sql(s"SELECT * FROM skewext_asof_join(TABLE(s), TABLE(p), $arguments)")
        assert(df.schema === asOf(spine, "t")(same).schema)
        checkAnswer(df, asOf(spine, "t")(same))
      }
      checkAnswer(
        sql("SELECT * FROM skewext_latest(TABLE(p), 'k', array('at ASC NULLS LAST', 'price'))"),
        latest(prices, "k")(col("at").asc_nulls_last, col("price"))())
      assert(
        intercept[AnalysisException](
          sql("SELECT * FROM skewext_asof_join(TABLE(s), TABLE(p), 'k', 't', array('at', 'at'))")).getMessage
          .contains("'times' has 2 values"))
    }
  }
}
