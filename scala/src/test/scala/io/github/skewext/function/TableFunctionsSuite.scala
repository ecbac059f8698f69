package io.github.skewext.function

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import io.github.skewext.explain.Explainer
import io.github.skewext.explain.report.SkewReport
import io.github.skewext.internal.BuildInfo
import io.github.skewext.technique.SkewTechniques
import io.github.skewext.{MultiJoinTest, PythonApi}
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{TestSessions, TestShims}
import org.apache.spark.sql.{AnalysisException, Column, DataFrame, Row}

/** What plain SQL can ask for. */
class TableFunctionsSuite extends MultiJoinTest {

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    table("k, v", "(1, 'a1'), (2, 'a2'), (null, 'a0')").createOrReplaceTempView("a")
    table("k, v", "(2, 'b2'), (2, 'b3'), (3, 'b1')").createOrReplaceTempView("b")
    table("k, w", "(1L, 'c1'), (3L, 'c2'), (null, 'c0')").createOrReplaceTempView("c")
    table("id, w", "(3, 'd1'), (4, 'd2')").createOrReplaceTempView("d")
  }

  private def inputs(names: String*): Seq[DataFrame] = names.map(spark.table)

  private def call(arguments: String): DataFrame =
    sql(s"SELECT * FROM skewext_multi_join($arguments)")

  /** The same columns and rows as the join that is made by the builder, by one operator. */
  private def check(arguments: String)(asked: DataFrame): Unit = {
    val df = call(arguments)
    assert(df.schema === asked.schema)
    assertSameRows(checkJoin(df), asked.collect().toSeq, "the same by name")
  }

  test("a join by its tables and keys", Slow) {
    check("TABLE(a), TABLE(b), 'k'")(fullJoin("k")(inputs("a", "b"): _*))
    check("TABLE(a), TABLE(b), TABLE(c), keys => array('k')")(
      fullJoin("k")(inputs("a", "b", "c"): _*))
    check("TABLE(SELECT * FROM a WHERE k > 1), TABLE(a), keys => 'K'")(
      fullJoin("K")(spark.table("a").where("k > 1"), spark.table("a")))
    check("TABLE(a), TABLE(b), array('k', 'v')")(fullJoin("k", "v")(inputs("a", "b"): _*))
  }

  test("roles, indicator, suffixes and names, by name and by position", Slow) {
    val all = inputs("a", "b", "c")
    for (roles <- Seq(
        "'left'" -> Seq("required", "optional", "optional"),
        "'INNER'" -> Seq("required", "required", "required"),
        "array('optional', 'required', 'excluded')" -> Seq("optional", "required", "excluded"))) {
      check(s"TABLE(a), TABLE(b), TABLE(c), 'k', ${roles._1}")(
        multiJoin(all, Seq("k"), roles = roles._2))
    }
    val whole = multiJoin(
      all,
      Seq("k"),
      roles = Seq("optional", "optional", "excluded"),
      suffixes = Seq("_a", "_b", ""),
      indicator = "which")
    check(
      "TABLE(a), TABLE(b), TABLE(c), suffixes => array('_a', '_b', NULL), Indicator => 'which', " +
        "roles => array('optional', 'optional', 'excluded'), keys => 'k', names => NULL")(whole)
    check(
      "TABLE(a), TABLE(b), TABLE(c), 'k', array('optional', 'optional', 'excluded'), 'which', " +
        "array('_a', '_b', '')")(whole)
    val renamed = multiJoin(inputs("a", "d"), Seq("key"), keys = Seq(Seq("k"), Seq("id")))
    check("TABLE(a), TABLE(d), keys => array(array('k'), array('id')), names => 'key'")(renamed)
  }

  test("as part of a query", Slow) {
    val join = "skewext_multi_join(TABLE(a), TABLE(b), keys => 'k')"
    checkJoin(sql(s"SELECT x.k, count(*) FROM $join AS x(k, v, w) JOIN c USING (k) GROUP BY x.k"))
    checkJoin(sql(s"SELECT l.k FROM $join AS l JOIN $join AS r ON l.k = r.k"))
    checkJoin(
      sql("WITH t AS (SELECT * FROM a) SELECT * FROM " +
        "skewext_multi_join(TABLE(t), TABLE(t), TABLE(b), 'k')"))
    withTempView("v") {
      sql(s"CREATE TEMPORARY VIEW v AS SELECT k FROM $join WHERE k > 1")
      checkJoin(spark.table("v"))
    }
    withSQLConf(Off) {
      val df = sql(s"SELECT * FROM $join")
      assert(operators(df).isEmpty)
      checkAnswer(df, stockChain("k")(inputs("a", "b"): _*))
    }
  }

  /** The rows of the query without the function, by the technique. */
  private def checkSkewJoin(query: String, technique: String, rest: String = ""): DataFrame = {
    val df = sql(s"SELECT * FROM skewext_skew_join(TABLE($query), '$technique'$rest)")
    assert(df.schema === sql(query).schema)
    assertSameRows(df.collect().toSeq, rowsWhenOff(sql(query)), s"$technique of $query")
    val origin = Explainer.explain(df.queryExecution).joins.head.origin
    // auto gives the name of the technique that it has chosen.
    val name = if (technique == "auto") "" else s"$technique: "
    assert(origin.text.startsWith(s"skew_join by $name"), origin)
    df
  }

  test("tables that are made of each other") {
    // A regression: Spark puts the plans of CTEs there later, and then both had one column.
    val sums =
      "SELECT k, s, s + 1 AS d FROM (SELECT k, count(v) AS s FROM b GROUP BY k HAVING count(v) > 0)"
    val again = "SELECT k AS k, s AS s FROM x WHERE s > 1"
    checkAnswer(
      sql(s"""WITH x AS ($sums), y AS ($again)
           |SELECT * FROM skewext_multi_join(TABLE(x), TABLE(y), keys => 'k')""".stripMargin),
      Seq(Row(2, 2, 3, 2), Row(3, 1, 2, null)))
    val joined =
      "SELECT * FROM skewext_multi_join(TABLE(a), TABLE(b), keys => 'k', suffixes => array('_a', '_b'))"
    checkAnswer(
      sql(s"""WITH x AS ($joined), y AS (SELECT k AS k, v_a AS w FROM x WHERE v_a = 'a2')
           |SELECT * FROM skewext_multi_join(TABLE(x), TABLE(y),
           |  keys => array(array('v_a'), array('w')), suffixes => array('_x', '_y'))
           |WHERE v_a IN ('a1', 'a2')""".stripMargin),
      sql(s"""WITH x AS ($joined), y AS (SELECT k AS k, v_a AS w FROM x WHERE v_a = 'a2')
           |SELECT coalesce(v_a, w), x.k, v_b, y.k FROM x FULL JOIN y ON v_a = w
           |WHERE v_a IN ('a1', 'a2')""".stripMargin).collect().toSeq)
  }

  test("a view has the settings of its creation") {
    withTempView("of_dates") {
      withSQLConf(SQLConf.SESSION_LOCAL_TIMEZONE.key -> "UTC") {
        sql("""CREATE TEMPORARY VIEW of_dates AS SELECT * FROM skewext_multi_join(
          |  TABLE(SELECT DATE'2024-01-01' AS k, 1 AS x),
          |  TABLE(SELECT timestamp_seconds(1704067200) AS k, 2 AS y), keys => 'k')""".stripMargin)
      }
      withSQLConf(SQLConf.SESSION_LOCAL_TIMEZONE.key -> "Asia/Tokyo") {
        checkAnswer(sql("SELECT x, y FROM of_dates"), Row(1, 2))
      }
    }
  }

  test("skewext_skew_join: every technique, by names and by a condition", Slow) {
    val full = "SELECT * FROM c FULL JOIN d ON c.k = d.id"
    val using = "SELECT * FROM a LEFT JOIN b USING (k)"
    val cases =
      for (technique <- SkewTechniques.all.map(_.name); query <- Seq(full, using))
        yield (technique, query)
    for ((technique, query) <- covering(cases)) {
      val keys = if (technique == "salted") ", hot_keys => array(3)" else ""
      checkSkewJoin(query, technique, keys)
    }
    checkSkewJoin(full, "salted", ", array(1, 3), salts => 2, side => 'both'")
    checkSkewJoin(full, "salted", ", hot_keys => array('3'), salts => '4'")
    checkSkewJoin(full, "salted", ", hot_keys => array()")
    checkSkewJoin(full, "adaptive", ", factor => 1.5, threshold => '1k', max_slices => 3")
    checkSkewJoin(full, "iterative_broadcast", ", chunks => 2, side => 'left'")
    checkSkewJoin(
      "SELECT * FROM a FULL JOIN b USING (k, v)",
      "salted",
      ", hot_keys => array(struct(2, 'a2'), struct(3L, 'b1'))")
  }

  test("skewext_skew_join: keys of other types", Slow) {
    val query = "SELECT * FROM VALUES (%s), (NULL) AS l(x) FULL JOIN VALUES (%s) AS r(x) USING (x)"
    for (value <- Seq(
        "DATE'2024-02-29'",
        "TIMESTAMP'2024-02-29 01:02:03'",
        "X'0aff'",
        "1.50BD",
        "true",
        "'a; b, c'",
        "double('NaN')",
        "array(1, 2)",
        // The outer struct is the row.
        "struct(named_struct('x', 1, 'y', array('a')))")) {
      val df = checkSkewJoin(query.format(value, value), "salted", s", array($value), salts => 2")
      assert(explainedText(df).contains("1 hot key"), value)
    }
  }

  private def explainedText(df: DataFrame): String =
    Explainer.explain(df.queryExecution).joins.head.origin.text

  test("skewext_skew_join: as part of a query, of views and of common tables", Slow) {
    val join = "skewext_skew_join(TABLE(SELECT * FROM a FULL JOIN c USING (k)), 'broadcast_map')"
    withTempView("joined") {
      sql("CREATE TEMPORARY VIEW joined AS SELECT * FROM a FULL JOIN c USING (k)")
      checkSkewJoin("SELECT * FROM joined", "adaptive")
    }
    for (query <- Seq(
        s"SELECT l.k, count(*) FROM $join AS l JOIN $join AS r ON l.k = r.k GROUP BY l.k",
        "WITH t AS (SELECT * FROM a WHERE k > 0) SELECT * FROM " +
          "skewext_skew_join(TABLE(SELECT * FROM t FULL JOIN c USING (k)), 'salted', array(2))")) {
      val stock = query
        .replace(join, "(SELECT * FROM a FULL JOIN c USING (k))")
        .replaceAll("skewext_skew_join\\(TABLE\\((.*)\\), 'salted', array\\(2\\)\\)", "($1)")
      assert(stock != query)
      assertSameRows(sql(query).collect().toSeq, rowsWhenOff(sql(stock)), query)
    }
    assert(jobsOf(sql(s"SELECT * FROM $join").queryExecution.executedPlan) === 0)
  }

  test("a view has its name in the result, and that of a DataFrame of Python has not") {
    val joined = sql("SELECT * FROM a JOIN b USING (k)")
    withTempView("v") {
      joined.createTempView("v")
      checkAnswer(
        sql("SELECT v.k FROM skewext_skew_join(TABLE(v), 'broadcast')"),
        joined.select("k"))
      val json =
        """{"function": "skew_join", "columns": [0], "arguments": {"technique": "broadcast"}}"""
      val bytes = json.getBytes(UTF_8).map(byte => f"$byte%02x").mkString
      checkAnswer(
        sql(s"SELECT b.v FROM skewext_request(TABLE(v), X'$bytes')"),
        joined.select("b.v"))
    }
  }

  test("columns that Python computes") {
    val b = spark.table("b")
    def latest(by: Column): DataFrame = PythonApi.run(
      """{"function": "latest", "columns": [1],
         "arguments": {"keys": "k", "by": [{"column": [0, 0]}], "ties": null}}""",
      java.util.Arrays.asList(b.select(col("*"), by)),
      java.util.Arrays.asList(b))
    checkAnswer(latest(col("v").asc), Seq(Row(2, "b2"), Row(3, "b1")))
    checkAnswer(latest(col("v")), Seq(Row(2, "b3"), Row(3, "b1")))
    checkAnswer(latest(-substring(col("v"), 2, 1).cast("int")), Seq(Row(2, "b2"), Row(3, "b1")))
    val place = row_number().over(Window.partitionBy("k").orderBy("v"))
    val error = intercept[AnalysisException](latest(place))
    assert(error.getMessage.contains("is not computed from the columns of one row"))
  }

  test("skewext_skew_join: wrong arguments and joins that a technique cannot do") {
    def join(rest: String, query: String = "SELECT * FROM a FULL JOIN c USING (k)") =
      s"skewext_skew_join(TABLE($query)$rest)"
    fails(join(", 'magic'"))("There is no technique 'magic'; the techniques are auto, none")
    fails(join(", 'broadcast', salts => 3"))("broadcast has no option 'salts'; it takes side.")
    fails(join(", 'broadcast', array(3)"))("has no option 'hot_keys'")
    fails(join(", 'adaptive', factor => 'x'"))("The option factor must be a number")
    fails(join(", 'adaptive', factor => true"))("'factor' must be a number, not true")
    fails(join(", 'salted'"))("hot_keys is missing: a hint and skewext_skew_join run no job")
    fails(join(", 'salted', 'x'"))("the argument 'hot_keys' must be an array, not x.")
    fails(join(", 'salted', array(array(1))"))("not a value of type")
    fails(join(", 'salted', array(struct(1, 2))"))("has 2 values, but the join compares 1 columns")
    fails(join("", "SELECT * FROM a"))("skew_join needs a join, not the operator")
    fails(join(", 'salted', array(1)", "SELECT * FROM a JOIN c ON a.k > c.k"))(
      "cannot do this join: the join compares no columns with =")
    fails(join(", 'broadcast_map'", "SELECT * FROM a FULL JOIN (SELECT rand() AS k) USING (k)"))(
      "cannot do this join: a side is read twice")
    fails("skewext_skew_join(TABLE(a), TABLE(b), 'auto')")("it takes 1 arguments like TABLE(t)")
  }

  test(
    "skewext_write_bucketed: writes when its row is read, with the contents as the result",
    Slow) {
    withTable("written_by_sql") {
      def write(arguments: String): DataFrame = sql(
        "SELECT written FROM skewext_write_bucketed(TABLE(SELECT k, v FROM b), " +
          s"'written_by_sql', by => 'k', buckets => 2$arguments)")
      def field(df: DataFrame, name: String) =
        JsonMethods.parse(df.collect().head.getString(0)) \ name
      val df = write("")
      val plan = write(", options => map('word', 'secret')").queryExecution.executedPlan.toString
      assert(
        plan.contains("BucketedWrite(written_by_sql, [k], 2") && !plan.contains("secret"),
        plan)
      assert(!spark.catalog.tableExists("written_by_sql"))
      val rows = (field(df, "buckets") \ "rows").children.map(_.values.toString.toInt)
      assert(rows.size === 2 && rows.sum === 3)
      val details = sql("DESCRIBE EXTENDED written_by_sql")
        .collect()
        .map(r => r.getString(0) -> r.getString(1))
        .toMap
      assert(details("Num Buckets") === "2" && details("Sort Columns") === "[`k`]")
      assertSameRows(
        spark.table("written_by_sql").collect().toSeq,
        inputs("b").head.collect().toSeq,
        "b")
      val error = intercept[AnalysisException](write("").collect())
      assert(error.getMessage.contains("already exists"))
      assert(field(write(", mode => 'ignore'"), "known").values === true)
      write(", mode => 'append', options => map('compression', 'zstd', 'path', NULL)")
        .collect()
      assert(spark.table("written_by_sql").count() === 6)
      val readTwice = sql(
        "WITH w AS (SELECT * FROM skewext_write_bucketed(TABLE(SELECT k, v FROM b), " +
          "'written_by_sql', by => 'k', buckets => 2, mode => 'append')) " +
          "SELECT * FROM w UNION ALL SELECT * FROM w")
      assert(readTwice.collect().toSet.size === 1)
      assert(spark.table("written_by_sql").count() === 9)
      write(", sort => array(), mode => 'overwrite', partition_by => array('v'), format => 'orc'")
        .collect()
      assert(spark.table("written_by_sql").inputFiles.forall(_.contains("/v=")))
      for ((sort, columns) <- Seq("false" -> None, "true" -> Some("[`k`]"))) {
        write(s", sort => $sort, mode => 'Overwrite'").collect()
        val found = sql("DESCRIBE EXTENDED written_by_sql").where("col_name = 'Sort Columns'")
        assert(found.collect().map(_.getString(1)).find(_ != "[]") === columns)
      }
    }
    val query = "skewext_write_bucketed(TABLE(b), 't'"
    fails(s"$query)")("the argument 'by' is missing.")
    fails(s"$query, 'k')")("the argument 'buckets' is missing.")
    fails(s"$query, 'k', 0)")("'buckets' must be a whole number from 1")
    fails(s"$query, array(), 2)")("the argument 'by' must have at least one name.")
    for (name <- Seq("by", "sort", "partition_by")) {
      val by = if (name == "by") "" else ", by => 'k'"
      fails(s"$query, buckets => 2$by, $name => array('k', NULL))")(s"a name in '$name' is NULL.")
    }
    fails(s"$query, 'k', 2, sort => 3)")("the argument 'sort' must be a string or an array")
    fails(s"$query, 'k', 2, options => 'x')")("the argument 'options' must be a map, not x.")
  }

  private def fails(query: String)(sentence: String): Unit = {
    val e = intercept[AnalysisException](sql(s"SELECT * FROM $query"))
    assert(e.getMessage.contains(sentence), e.getMessage)
    assert(TestShims.errorClass(e) != null)
  }

  test("wrong arguments") {
    def join(rest: String) = s"skewext_multi_join(TABLE(a), TABLE(b)$rest)"
    fails(join(""))("skewext_multi_join: the argument 'keys' is missing.")
    fails(join(", NULL"))("the argument 'keys' is missing.")
    fails(join(", 'nope'"))("Input 0 (counting from 0) has no column 'nope'")
    fails(join(", 3"))("the argument 'keys' must be a string or an array of strings, not 3.")
    fails(join(", array('k', NULL)"))("a name in 'keys' is NULL.")
    fails(join(", 'k', names => array('a', NULL)"))("a name in 'names' is NULL.")
    fails(join(", 'k', keys => 'k'"))("the argument 'keys' is given twice.")
    fails(join(", kies => 'k'"))("there is no argument 'kies'; they are keys, roles")
    fails(join(", 'k', 'right'"))("There is no role 'right'")
    fails(join(", 'k', array('optional')"))("roles must have 2 entries, one for each input, not 1.")
    fails(join(", concat('k', rand())"))("the argument 'keys' must be a constant")
    fails(join(", 'k', NULL, NULL, NULL, NULL, 'x'"))("there are 6 arguments after the tables")
    fails("skewext_multi_join(TABLE(a), 'k')")("A multi-way join needs at least two inputs, got 1.")
    fails("skewext_multi_join('k', TABLE(a))")("tables come first, and have no names.")
    fails("skewext_explain()")("it takes 1 arguments like TABLE(t), got 0.")
    fails("skewext_explain(TABLE(a), 1)")(
      "there are 1 arguments after the tables, and it takes nothing.")
    for (partitions <- Seq("0", "1000001", "1.5"))
      fails(s"skewext_skew_report(TABLE(a), 'k', partitions => $partitions)")(
        s"'partitions' must be a whole number from 1 to 1000000, not $partitions.")
    fails("skewext_skew_report(TABLE(a), 'k', min_share => 0.7)")("between 0.00001 and 0.5")
    fails("skewext_skew_report(TABLE(a), 'k', sizes => 'yes')")("must be true or false, not yes.")
    fails("skewext_skew_report(TABLE(a), 'x')")("has no column 'x'")
    for (text <- Seq("v NULLS LAST", "v nulls first"))
      fails(s"skewext_latest(TABLE(a), 'k', '$text')")(
        s"the order '$text' has NULLS, but neither ASC nor DESC.")
    for ((text, last) <- Seq("v asd" -> "asd", "v nulls_last" -> "nulls_last", "v AS w" -> "w"))
      fails(s"skewext_latest(TABLE(a), 'k', '$text')")(
        s"the order '$text' has '$last', which is neither ASC nor DESC.")
    fails("skewext_query_report('x')")("the argument 'query' must be a number, not x.")
  }

  test("orders with blanks around them, and no ties") {
    def newest(order: String, ties: String = "") = spark
      .sql(s"SELECT v FROM skewext_latest(" +
        s"TABLE(SELECT * FROM VALUES (1, 5), (1, 9) AS t(k, v)), 'k', '$order'$ties)")
      .as[Int](org.apache.spark.sql.Encoders.scalaInt)
      .collect()
      .toSeq
    assert(Seq("v", " v ", "v DESC ", "v desc\n").map(newest(_)) === Seq.fill(4)(Seq(9)))
    assert(Seq("v ASC", "v ASC ", " v  asc  nulls last ").map(newest(_)) === Seq.fill(3)(Seq(5)))
    assert(newest("k", ", ties => array()") === newest("k"))
  }

  test("runs nothing before an action") {
    val query = "skewext_skew_report(TABLE(b), 'k', partitions => 3)"
    var df: DataFrame = null
    assert(jobsOf {
      df = sql(s"SELECT * FROM $query")
      df.schema
      df.queryExecution.executedPlan
      sql(s"EXPLAIN SELECT * FROM $query").collect()
      sql("SELECT * FROM skewext_query_report(123456)")
    } === 0)
    assert(jobsOf(df.collect()) > 0)
    intercept[AnalysisException](sql("SELECT * FROM skewext_query_report(123456)").collect())
  }

  test("skewext_skew_report") {
    val df = sql("SELECT * FROM skewext_skew_report(TABLE(b), 'k', partitions => 3)")
    val named = SkewReport.of(spark, Seq(spark.table("b")), Seq(Seq("k")), Some(3), 0.001, false)
    checkAnswer(df, named.frame.collect().toSeq)
    assert(df.where("key IS NULL").collect().toSeq.map(_.getString(4)) === Seq(named.figures))
    // Of two, of common tables, and in the middle of a query that shuffles.
    val counts = sql("""
      WITH t AS (SELECT * FROM b), u AS (SELECT * FROM t WHERE k = 2)
      SELECT key.k, sum(most_rows[0] * most_rows[1]) AS n
      FROM skewext_skew_report(TABLE(t), TABLE(u), 'k') WHERE key IS NOT NULL GROUP BY 1""")
    checkAnswer(counts, Seq(Row(2, 4L), Row(3, 0L)))
  }

  private val report = "skewext_skew_report(TABLE(?), 'k', partitions => 3)"

  /** The query reads a common table expression, or its table, in place of each `?`. */
  private def checkReports(query: String): Unit = {
    val expected = sql(query.replace("?", "b")).collect().toSeq
    assert(expected.nonEmpty, query)
    val named = sql(s"WITH unused AS (SELECT 1), t AS (SELECT * FROM b) ${query.replace("?", "t")}")
    assertSameRows(named.collect().toSeq, expected, query)
  }

  test("reports on common table expressions, in subqueries", Slow) {
    val hot = s"SELECT key.k FROM $report WHERE key IS NOT NULL"
    checkReports(s"SELECT * FROM ? WHERE k IN ($hot)")
    checkReports(s"SELECT * FROM a WHERE EXISTS ($hot)")
    checkReports(s"SELECT *, (SELECT count(*) FROM $report) AS n FROM ?")
    checkReports(s"SELECT * FROM (SELECT count(*) FROM ?), LATERAL ($hot)")
    checkReports(s"SELECT * FROM a WHERE k IN (WITH u AS (SELECT * FROM ? WHERE k = 2) $hot)")
    checkReports(
      s"SELECT * FROM a WHERE k IN (WITH u AS (SELECT * FROM ? WHERE k = 2) " +
        s"${hot.replace("?", "u")})")
    checkReports(s"SELECT * FROM a WHERE k IN (SELECT k FROM b WHERE k IN ($hot))")
  }

  test("reports on common table expressions, in other ones") {
    for (table <- Seq("?", "u", "v", "w")) {
      checkReports(s"""SELECT * FROM (
        WITH u AS (SELECT * FROM ?), v AS (SELECT key.k FROM $report WHERE key IS NOT NULL),
          w AS (SELECT * FROM u JOIN v USING (k))
        SELECT * FROM ${report.replace("?", table)})""")
    }
    checkReports(s"""SELECT * FROM ${report.replace(
        "?",
        "WITH x AS (SELECT * FROM ? WHERE k = 2) SELECT * FROM x JOIN b USING (k)")}""")
    checkReports(
      s"""SELECT * FROM ${report.replace("?", "SELECT * FROM a WHERE k IN (SELECT k FROM ?)")}""")
  }

  test("reports on reports on common table expressions") {
    val keys = s"SELECT key.k AS k FROM $report WHERE key IS NOT NULL"
    val once = report.replace("?", keys)
    checkReports(s"SELECT * FROM $once")
    checkReports(s"SELECT * FROM ${report.replace("?", s"SELECT key.k AS k FROM $once")}")
    checkReports(s"SELECT * FROM ${report.replace("?", s"$keys AND key.k IN (SELECT k FROM ?)")}")
    withTable("hot") {
      val written = sql(s"""WITH t AS (SELECT * FROM b)
        SELECT * FROM skewext_write_bucketed(TABLE(${keys.replace("?", "t")}), 'hot', 'k', 4)""")
      assert(written.collect().length === 1)
      checkAnswer(spark.table("hot"), Seq(Row(2), Row(3)))
    }
    val explained = sql("""WITH t AS (SELECT k FROM a) SELECT * FROM skewext_explain(
      TABLE(WITH x AS (SELECT * FROM t) SELECT * FROM x JOIN b USING (k)))""")
    assert(explained.collect().head.getString(0).contains("\"joins\":[{"))
  }

  test("the page lists the arguments of each function in their order") {
    val page = Paths.get(sys.props("skewext.root"), "docs", "sql.md")
    val text = new String(Files.readAllBytes(page), UTF_8)
    val signature = raw"(?m)^\| `(\w+)\((.*)\)` \|".r
    val listed = signature.findAllMatchIn(text).map(m => m.group(1) -> m.group(2)).toMap
    assert(listed.keySet === TableFunctions.public.map(_._1.funcName).toSet)
    for ((name, _, function) <- TableFunctions.public) {
      // The error for too many arguments lists the parameters.
      val error = intercept[AnalysisException](function(Seq.fill(100)(Literal(1)))).getMessage
      val taken = raw"it takes (.*)\.".r.findFirstMatchIn(error).get.group(1).replace("nothing", "")
      val shown = listed(name.funcName).replaceFirst(raw"^(TABLE\(\w+\)(, |$$)|\.\.\., )+", "")
      // The options of techniques are on another page.
      if (shown.endsWith(", ...")) assert(taken.startsWith(shown.stripSuffix("...")))
      else assert(taken === shown)
    }
  }

  test("skewext_explain, skewext_query_report and skewext_version") {
    def one(query: String): String = sql(query).collect() match {
      case Array(row) => row.getString(0)
    }
    val explained = one("SELECT * FROM skewext_explain(TABLE(SELECT * FROM a JOIN b USING (k)))")
    val same = PythonApi.explain(sql("SELECT * FROM a JOIN b USING (k)"))
    assert(JsonMethods.parse(explained) === JsonMethods.parse(same))
    assert(
      one(
        "WITH t AS (SELECT k FROM a) SELECT * FROM skewext_explain(TABLE(SELECT * FROM t JOIN b " +
          "USING (k)))").contains("\"joins\":[{"))
    fullJoin("k")(inputs("a", "b"): _*).collect()
    TestSessions.drainEvents(spark)
    assert(one("SELECT report FROM skewext_query_report()").contains("\"MultiFullJoin\""))
    checkAnswer(sql("SELECT * FROM skewext_version()"), Row(BuildInfo.version, BuildInfo.sparkLine))
    val described = sql("DESCRIBE FUNCTION skewext_explain").collect().mkString
    assert(described.contains("skewext_explain(TABLE(query))"))
  }
}
