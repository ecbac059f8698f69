package io.github.skewext.asof

import java.lang.management.ManagementFactory

import scala.util.Random

import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalLimit, LocalRelation, Project, Sort}
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DoubleType, IntegerType}
import org.apache.spark.sql.{AnalysisException, Column, DataFrame, Row}

/** As-of joins, against every pair of rows of a key. */
class AsOfJoinSuite extends AsOfTables {

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

  test("each direction, tolerance and type of time, as by all pairs of rows of a key", Slow) {
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
        val spine = source(rows(1, 60, 3, times.values, "t"))
        // Few times, so that there are ties; a version may also occur twice.
        val versions = source(rows(2, 40, 4, times.values, "bt").withColumn("id2", col("id2") % 20))
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

  test("the join selects the columns of a projection, but not below generated code") {
    val df = asOf(spine, "t")(Versions(prices, "at"))
    val all = Some(df.columns.toSeq)
    val cases = Seq(
      df -> all,
      df.select("price", "id") -> Some(Seq("price", "id")),
      df.repartition(3, col("at")) -> all,
      df.union(df) -> all,
      df.groupBy("k").agg(sum("price")) -> None,
      df.selectExpr("id + price AS sum") -> None)
    for ((query, columns) <- cases) withClue(s"${query.columns.mkString(", ")}: ") {
      val expected = withoutSelection(query.collect().toSeq)
      inGeneratedCode(withSQLConf("spark.sql.adaptive.enabled" -> "true") {
        val again = query.where(lit(true))
        assertSameRows(again.collect().toSeq, expected, "the rows of Spark's projection")
        assert(joins(again).map(_.shown.map(_.map(_.name))).distinct === Seq(columns))
      })
    }
  }

  /** Without adaptive execution, a projection stays. */
  private def withoutSelection[T](body: => T): T = {
    var result: Option[T] = None
    withSQLConf("spark.sql.adaptive.enabled" -> "false") { result = Some(body) }
    result.get
  }

  test("few and many rows of a key, in any order of time", Slow) {
    for (size <- Seq(1, 2, 47, 48, 49); of <- Seq(1, 7, 60)) {
      // 11 and 13 have no common factor with the sizes, so times come in no order, some twice.
      val rows = spark.range(size).selectExpr("1 AS k", "id", s"id * 11 % $size div 2 * 3 AS t")
      val v = spark.range(of).selectExpr("1 AS k", "id AS n", s"id * 13 % $of * 2 AS at")
      for (direction <- Seq("backward", "forward", "nearest"); exact <- Seq(true, false)) {
        val found = asOf(rows, "t")(Versions(v, "at", direction, exact = exact))
          .select("t", "at")
          .collect()
          .map(row => row.getLong(0) -> Option(row.get(1)).map(_.asInstanceOf[Long]))
        val times = (0 until of).map(_ * 2L)
        for ((t, at) <- found) {
          val before = times.filter(o => o < t || (exact && o == t)).lastOption
          val after = times.find(o => o > t || (exact && o == t))
          val nearest = (before ++ after).toSeq.sortBy(o => (math.abs(o - t), o)).headOption
          val expected = direction match {
            case "backward" => before
            case "forward" => after
            case _ => nearest
          }
          assert(at === expected, s"$direction, exact $exact, $size rows, $of versions, at $t")
        }
        assert(found.length === size)
      }
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

  test("keys of strings and numbers are compared as Spark compares them") {
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "false") {
      val names = table("k, at, price", "('1', 1, 10), ('01', 2, 20), ('x', 3, 30), (null, 4, 40)")
      val numbers = table("k, at, price", "(1, 2, 20), (2, 3, 30)")
      for ((spine, versions, matches) <- Seq(
          (numbers.selectExpr("k", "9 AS t"), names, 1),
          (names.selectExpr("k", "9 AS t"), numbers, 2))) {
        val isEqual = spine("k") === versions("k")
        val pairs = spine.join(versions, isEqual).groupBy(spine("k"), spine("t")).agg(max("price"))
        checkAnswer(
          asOf(spine, "t", "inner")(Versions(versions, "at")).select("k", "t", "price"),
          pairs.collect().toSeq)
        assert(pairs.count() === matches)
      }
    }
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

  test("columns and tables that only decide ties, or nothing, are not read", Slow) {
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
        assertSameRows(df.collect().toSeq, rowsWhenOff(df), "with skewext off")
        df.queryExecution.sparkPlan.collectLeaves().map(_.output.map(_.name).toSet)
      }
      assert(read(df("left").select("id", "c")).last === Set("k", "at", "a", "b", "c"))
      assert(read(df("left").select("id", "b")).last === Set("k", "at", "a", "b"))
      assert(read(df("left").where("a > 1").select("id")).last === Set("k", "at", "a"))
      assert(read(df("left").groupBy("at").count()).last === Set("k", "at"))
      assert(read(df("left").select("id")) === Seq(Set("id")))
      assert(read(df("inner").select("id")).last === Set("k", "at"))
      assert(read(latestOf.select("k", "a")) === Seq(Set("k", "at", "a")))
      // Equal arrays and structs of integers are identical, but 0.0 and -0.0 are not.
      val nested = sql("SELECT k, at, struct(a) AS s, array(b) AS l, c / 2 AS d, c AS z FROM p")
      def latestOfNested = latest(nested, "k")(col("at"))()
      assert(read(latestOfNested.select("k", "s")) === Seq(Set("k", "at", "a")))
      assert(read(latestOfNested.select("k", "l")) === Seq(Set("k", "at", "a", "b")))
      assert(read(latestOfNested.select("k", "d")) === Seq(Set("k", "at", "a", "b", "c")))
    }
  }

  test("a table that the query observes is read") {
    val observed = prices.observe("seen", count(lit(1)).as("n"))
    for ((versions, isRead) <- Seq(prices -> false, observed -> true)) {
      val df = asOf(spine, "t")(Versions(versions, "at")).select("id")
      checkAnswer(df, spine.select("id"))
      assert(joins(df).nonEmpty === isRead, df.queryExecution.executedPlan)
    }
  }

  private def join(df: DataFrame): MultiAsOfJoin =
    df.queryExecution.optimizedPlan.collectFirst { case join: MultiAsOfJoin => join }.get

  private val Hours = types.find(_.name == "timestamp_ntz").get.values

  test("the ORDER BY of an input is removed") {
    def sorts(df: DataFrame): Int =
      df.queryExecution.optimizedPlan.collect { case s: Sort => s }.size
    val spine = rows(1, 60, 3, Hours, "t")
    val versions = rows(2, 40, 4, Hours, "bt")
    val unsorted = asOf(spine, "t")(Versions(versions, "bt"))
    val sorted =
      asOf(spine.orderBy("t"), "t")(Versions(versions.orderBy("x2").where("id2 >= 0"), "bt"))
    assert(sorts(sorted) === 0)
    assertSameRows(sorted.collect().toSeq, unsorted.collect().toSeq, "unsorted inputs")
    for (kept <- Seq(spine.orderBy("t", "id1").limit(9), spine.sortWithinPartitions("k", "t"))) {
      val df = asOf(kept, "t")(Versions(versions, "bt"))
      assert(sorts(df) === 1)
      val expected = unsorted.join(kept.select("id1"), Seq("id1"), "left_semi")
      assertSameRows(df.collect().toSeq, expected.collect().toSeq, "unsorted inputs")
    }
    assert(sorts(unsorted.orderBy("t")) === 1)
  }

  test("an inner join shuffles no row of the spine without a key or a time") {
    val spine = stored(rows(1, 60, 3, Hours, "t"))
    val versions = rows(2, 40, 4, Hours, "bt")
    def checked(df: DataFrame): Set[String] =
      join(df).spine
        .collect { case Filter(condition, _) => SparkAsOfCondition.conjuncts(condition) }
        .flatten
        .map(_.sql)
        .toSet
    val ofInner = asOf(spine, "t", "inner")(Versions(versions, "bt"))
    val ofLeft = asOf(spine, "t")(Versions(versions, "bt"))
    assert(checked(ofInner) === Set("(k IS NOT NULL)", "(t IS NOT NULL)"))
    assert(checked(ofLeft).isEmpty)
    assertSameRows(
      ofInner.collect().toSeq,
      ofLeft.where("id2 IS NOT NULL").collect().toSeq,
      "a left join")
  }

  test("a limit above a left join limits the spine") {
    val spine = rows(1, 60, 3, Hours, "t")
    val versions = rows(2, 40, 4, Hours, "bt")
    def limits(df: DataFrame): Seq[Boolean] =
      join(df).children.map(_.exists(_.isInstanceOf[LocalLimit]))
    for ((how, isLimited) <- Seq("left" -> true, "inner" -> false)) {
      val df = asOf(spine, "t", how)(Versions(versions, "bt"))
      val all = df.collect().toSet
      val some = df.limit(7)
      assert(limits(some) === Seq(isLimited, false))
      val rows = some.collect()
      assert(rows.length === 7 && rows.toSet.subsetOf(all))
    }
    val filtered = asOf(spine, "t")(Versions(versions, "bt")).where("id2 > 3").limit(7)
    assert(limits(filtered) === Seq(false, false))
    assert(filtered.collect().length === 7)
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

}
