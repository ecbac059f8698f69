package io.github.skewext.function

import io.github.skewext.internal.BuildInfo
import io.github.skewext.{MultiJoinTest, PythonApi}
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.skewext.{TestSessions, TestShims}
import org.apache.spark.sql.{AnalysisException, DataFrame, Row}

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

  test("a join by its tables and keys") {
    check("TABLE(a), TABLE(b), 'k'")(fullJoin("k")(inputs("a", "b"): _*))
    check("TABLE(a), TABLE(b), TABLE(c), keys => array('k')")(
      fullJoin("k")(inputs("a", "b", "c"): _*))
    check("TABLE(SELECT * FROM a WHERE k > 1), TABLE(a), keys => 'K'")(
      fullJoin("K")(spark.table("a").where("k > 1"), spark.table("a")))
    check("TABLE(a), TABLE(b), array('k', 'v')")(fullJoin("k", "v")(inputs("a", "b"): _*))
  }

  test("roles, indicator, suffixes and names, by name and by position") {
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

  test("as part of a query") {
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
    fails(join(", 'k', keys => 'k'"))("the argument 'keys' is given twice.")
    fails(join(", kies => 'k'"))("there is no argument 'kies'; they are keys, roles")
    fails(join(", 'k', 'right'"))("there is no role 'right'")
    fails(join(", 'k', array('optional')"))(
      "There are 2 inputs, but key columns for 2, roles for 1")
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
    fails("skewext_query_report('x')")("the argument 'query' must be a number, not x.")
  }

  test("nothing runs before rows are asked for") {
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
    val (figures, keys) = df.collect().toSeq.partition(_.isNullAt(0))
    val named = PythonApi.skewReport(
      java.util.Arrays.asList(spark.table("b")),
      java.util.Arrays.asList(java.util.Arrays.asList("k")),
      3,
      0.001,
      withBytes = false)
    assert(figures.map(_.getString(4)) === Seq(named.figures))
    assert(
      keys.map(r => Row(r.getStruct(0).get(0), r.getLong(1), r.getSeq[Long](2).head)).toSet ===
        named.hotKeys.collect().map(r => Row(r.get(0), r.getLong(1), r.getLong(2))).toSet)
    // Of two, of common tables, and in the middle of a query that shuffles.
    val counts = sql("""
      WITH t AS (SELECT * FROM b), u AS (SELECT * FROM t WHERE k = 2)
      SELECT key.k, sum(most_rows[0] * most_rows[1]) AS n
      FROM skewext_skew_report(TABLE(t), TABLE(u), 'k') WHERE key IS NOT NULL GROUP BY 1""")
    checkAnswer(counts, Seq(Row(2, 4L), Row(3, 0L)))
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
