package io.github.skewext.join.optimizer

import io.github.skewext.join.MultiFullJoin
import io.github.skewext.rewrite.RewriteTest

import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.{DataFrame, Row}

/** ANSI mode: an input casts its key above a join that drops the rows whose cast fails. */
class FailingKeysSuite extends RewriteTest {

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    table("s, v", "('5', 1), ('7', 2), ('abc', 3)").createOrReplaceTempView("raw")
    table("s", "('5'), ('7')").createOrReplaceTempView("valid")
    for (name <- Seq("a", "c", "d"))
      table(s"k, v$name", "(5, 10), (6, 20), (null, 30)").createOrReplaceTempView(name)
    withAnsi {
      spark
        .sql("SELECT CAST(raw.s AS INT) AS k, raw.v AS vb FROM raw JOIN valid ON raw.s = valid.s")
        .createOrReplaceTempView("b")
      spark
        .sql("SELECT CAST(s AS INT) AS k, 1 AS ve FROM valid")
        .createOrReplaceTempView("e")
    }
  }

  private def withAnsi(body: => Unit): Unit = withSQLConf("spark.sql.ansi.enabled" -> "true")(body)

  /** Whether each input has a filter with this text. */
  private def have(df: DataFrame, text: String): Seq[Boolean] =
    df.queryExecution.optimizedPlan.collect { case join: MultiFullJoin =>
      join.children.map(_.exists {
        case Filter(condition, _) => condition.sql.contains(text)
        case _ => false
      })
    }.flatten

  private val FullJoins = "SELECT * FROM a FULL JOIN b USING (k) FULL JOIN d USING (k)"

  test("a predicate on the key stays above the input, and reaches the others", Slow) {
    withAnsi {
      val df = checkRewritten(s"$FullJoins WHERE k = 5", 3)
      assert(have(df, "= 5") === Seq(true, false, true))
      assert(checkRewritten(s"$FullJoins WHERE k = 5 OR k = 7 AND vb > 0", 3).count() === 2)
      // Nothing drops rows before this cast.
      val pushed = checkRewritten(s"$FullJoins FULL JOIN e USING (k) WHERE k = 5", 4)
      assert(have(pushed, "= 5") === Seq(true, false, true, true))
      // Spark pushes the predicate below the groups, and count(*) > 1 stays above.
      val twice = "(SELECT s FROM raw UNION ALL SELECT s FROM valid)"
      checkRewritten(
        s"""SELECT * FROM a FULL JOIN d USING (k) FULL JOIN (
           |  SELECT CAST(s AS INT) AS k, n FROM (
           |    SELECT s, count(*) AS n FROM $twice GROUP BY s HAVING count(*) > 1)) USING (k)
           |WHERE k = 5""".stripMargin,
        3)
      // From 4.2 on, Spark evaluates a predicate on the key first, and the filter by RLIKE above.
      val numbers = "(SELECT *, s RLIKE '^[0-9]+$' AS num FROM raw)"
      checkRewritten(
        s"""SELECT * FROM a FULL JOIN (SELECT CAST(s AS INT) AS k, v FROM $numbers WHERE num) USING (k)
           |FULL JOIN d USING (k) WHERE k = 5""".stripMargin,
        3)
      // The predicate on the key goes to an input that must have it, if its key cannot fail.
      checkRewritten(s"$FullJoins WHERE vb > 0 AND k = 5", 3)
      // Spark makes inner joins of its full joins here, and fails.
      val required = sql(s"$FullJoins WHERE vb > 0 AND va > 0 AND k = 5")
      checkAnswer(required, Row(5, 10, 1, 10))
      assert(have(required, "= 5") === Seq(true, false, true))
      // Spark pushes its own predicates on other columns.
      assert(have(required, "> 0") === Seq(true, true, false))
    }
  }

  test("functions that fail outside of ANSI mode, and casts of a view that is in ANSI mode") {
    withSQLConf("spark.sql.ansi.enabled" -> "false") {
      for (key <- Seq(
          "to_number(raw.s, '999')",
          "element_at(array(5, 7), CAST(raw.s = '5' AS INT))")) {
        val b = s"(SELECT CAST($key AS INT) AS k, v AS vb FROM raw JOIN valid ON raw.s = valid.s " +
          "WHERE raw.s = '5')"
        val df = checkRewritten(
          s"SELECT * FROM a FULL JOIN $b USING (k) FULL JOIN d USING (k) WHERE k = 5",
          3)
        assert(have(df, "= 5") === Seq(true, false, true))
      }
    }
    // The casts of `b` were analyzed in ANSI mode.
    val ofView = spark.table("b")
    withSQLConf("spark.sql.ansi.enabled" -> "false") {
      val df = checkRewritten(
        spark
          .table("a")
          .join(ofView, Seq("k"), "full")
          .join(spark.table("d"), Seq("k"), "full")
          .where("k = 5"),
        3)
      assert(have(df, "= 5") === Seq(true, false, true))
    }
  }

  test("functions of a view that is in ANSI mode", Slow) {
    table("n, v", "(5, 10), (30, 20)").createOrReplaceTempView("numbers")
    table("n", "(5)").createOrReplaceTempView("few")
    for ((key, value) <- Seq(
        "day(make_date(2024, 2, n))" -> 5,
        "day(next_day(DATE'2024-01-28', if(n = 5, 'MON', 'x')))" -> 29,
        "unix_timestamp(if(n = 5, '5', 'x'), 's')" -> 5,
        "abs(if(n = 5, -5, -2147483648))" -> 5,
        "-if(n = 5, -5, -2147483648)" -> 5,
        "round(if(n = 5, 5, 2147483647), -1)" -> 10)) withClue(key) {
      withAnsi {
        sql(s"SELECT $key AS k, v AS vb FROM numbers JOIN few USING (n)").createOrReplaceTempView(
          "f")
      }
      val ofView = spark.table("f")
      withSQLConf("spark.sql.ansi.enabled" -> "false") {
        val full =
          Seq(ofView, spark.table("d")).foldLeft(spark.table("a"))(_.join(_, Seq("k"), "full"))
        val df = checkRewritten(full.where(s"k = $value"), 3)
        assert(have(df, s"= $value") === Seq(true, false, true))
      }
    }
  }

  test("a predicate that fails outside of ANSI mode does not reach rows that another join drops") {
    withSQLConf("spark.sql.ansi.enabled" -> "false") {
      table("k, va", "('5555', 1), (null, 1)").createOrReplaceTempView("encoded")
      table("k, vb", "('a', 1), ('5555', 1), (null, 1)").createOrReplaceTempView("other")
      for (predicate <- Seq(
          "length(unbase64(k)) > 1",
          "CAST(k AS INTERVAL DAY) > INTERVAL '1' DAY")) {
        checkRewritten(
          "SELECT * FROM encoded a FULL JOIN other b USING (k) FULL JOIN encoded d USING (k) " +
            s"WHERE a.va > 0 AND $predicate",
          3)
      }
    }
  }

  test("null keys are filtered in the other inputs") {
    withAnsi {
      val joined = "SELECT * FROM c LEFT JOIN (SELECT * FROM a FULL JOIN b USING (k)) USING (k)"
      val df = checkRewritten(joined, 3)
      assert(have(df, "IS NOT NULL") === Seq(false, true, false))
    }
  }

  test("predicates of a required input are inferred for the other inputs") {
    withAnsi {
      val inputs = Seq("c", "a", "b").map(spark.table(_))
      val df = multiJoin(
        inputs.updated(0, inputs.head.where("k < 6")),
        Seq("k"),
        roles = Seq("required", "optional", "optional"))
      // Spark makes left joins of its full joins here, and fails.
      checkAnswer(df, Row(5, 10, 10, 1))
      assert(have(df, "< 6") === Seq(true, true, false))
    }
  }

  test("a semi-join on the key is not pushed into the input") {
    withAnsi {
      val query = s"SELECT * FROM ($FullJoins WHERE vb > 0) LEFT SEMI JOIN c USING (k)"
      assert(checkRewritten(query, 3).count() === 1)
    }
  }

  test("a broadcast hint on an input") {
    withAnsi {
      // Spark infers the predicates of the hinted input for the other side of its own join.
      val hinted = spark.table("a").where("k < 6").hint("broadcast")
      val two = multiJoin(Seq(spark.table("b"), hinted), Seq("k"), roles = Seq.fill(2)("required"))
      checkAnswer(two, Row(5, 1, 10))
      assert(operators(two).isEmpty)
    }
  }

  test("without ANSI mode: predicates that fail for keys of other inputs") {
    withSQLConf("spark.sql.ansi.enabled" -> "false") {
      table("s, p, n, va", "('x', 'x', 1, 1), ('xy', 'x%', 2, 2)").createOrReplaceTempView("pa")
      table("s, p, n, vb", "('y', 'z\\\\', 0, 3), ('x', 'x', 1, 4)").createOrReplaceTempView("pb")
      table("s, p, n, vc", "('y', '(', -1, 5), ('x', 'x', 1, 6)").createOrReplaceTempView("pc")
      for (predicate <- Seq(
          "s LIKE p",
          "size(split(s, p)) > 0",
          "INTERVAL '1' DAY / n > INTERVAL '0' DAY")) {
        val df = spark.sql(
          "SELECT * FROM pa FULL JOIN pb USING (s, p, n) FULL JOIN pc USING (s, p, n) " +
            s"WHERE va = 1 AND ($predicate)")
        withClue(predicate)(checkRewritten(df, 3))
      }
    }
  }
}
