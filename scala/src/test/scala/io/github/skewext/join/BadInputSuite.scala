package io.github.skewext.join

import io.github.skewext.{MultiJoinTest, PythonApi}

import org.apache.spark.sql.skewext.TestShims
import org.apache.spark.sql.{AnalysisException, DataFrame}

/** Wrong arguments: each gives an error of one sentence, and the session stays usable. */
class BadInputSuite extends MultiJoinTest {

  private def a = table("k, v", "(1, 1)")
  private def b = table("k, w", "(1, 2)")

  private def fails(sentence: String)(join: => DataFrame): Unit = {
    val e = intercept[AnalysisException](join)
    assert(e.getMessage.contains(sentence), e.getMessage)
    // PySpark 4 fails on an error without a class. The class must not appear in the message.
    assert(TestShims.errorClass(e) != null && !e.getMessage.contains("ERROR"), e.getMessage)
    checkJoin(fullJoin("k")(a, b))
  }

  test("refuses too few inputs, streaming inputs, and inputs of another session") {
    fails("A multi-way join needs at least two inputs, got 1.")(fullJoin("k")(a))
    fails("A multi-way join needs at least two inputs, got none.")(fullJoin("k")())
    fails("Input 1 (counting from 0) is a streaming DataFrame")(
      fullJoin("k")(a, spark.readStream.format("rate").load().selectExpr("value AS k")))
  }

  test("refuses keys that are missing, repeated, ambiguous or not comparable", Slow) {
    fails("The list of key columns is empty")(fullJoin()(a, b))
    fails("Input 1 (counting from 0) has no column 'v'; its columns are [k, w].")(
      fullJoin("k", "v")(a, b))
    fails("The list of key columns contains 'K' twice.")(fullJoin("k", "K")(a, b))
    fails("Input 0 (counting from 0) has 2 columns named 'k'")(fullJoin("k")(a.select("k", "k"), b))
    fails("Input 1 (counting from 0) has 1 key columns (k), the join has 2 (k, v)")(
      multiJoin(Seq(a, b), Seq("k", "v"), Seq(Seq("k", "v"), Seq("k"))))
    fails("Input 1 (counting from 0) has the key column 'm' of type MAP<INT, INT>")(
      multiJoin(Seq(a, spark.sql("SELECT map(1, 2) AS m")), Seq("k"), Seq(Seq("k"), Seq("m"))))
    withSQLConf("spark.sql.caseSensitive" -> "true") {
      fails("Input 0 (counting from 0) has no column 'K'")(fullJoin("K")(a, b))
    }
  }

  test("refuses key types that a chain would compare in several ways") {
    // In ANSI mode two inputs are compared as numbers, see KeyTypesSuite.
    withSQLConf("spark.sql.ansi.enabled" -> "false") {
      fails("input 0: k INT, input 1: k STRING")(fullJoin("k")(a, table("k, s", "('1', 1)")))
    }
    val long = table("k, l", "(1L, 1)")
    val double = table("k, d", "(1.0D, 1)")
    fails("Cast the columns to one type")(fullJoin("k")(long, long, double))
    // With two inputs there is one comparison, and therefore one type.
    checkFullJoin("k")(long, double)
  }

  test("refuses unknown roles, only excluded inputs, and a wrong number of roles") {
    fails(
      "There is no role 'left'. The roles are 'full', 'left' or 'inner', or for each input one of")(
      multiJoin(Seq(a, b), Seq("k"), roles = Seq("left", "optional")))
    fails("All inputs are excluded")(
      multiJoin(Seq(a, b), Seq("k"), roles = Seq("excluded", "excluded")))
    fails("roles must have 2 entries, one for each input, not 1.")(
      multiJoin(Seq(a, b), Seq("k"), roles = Seq("optional")))
  }

  test("refuses suffixes and indicators that repeat a name") {
    fails("two columns named 'v_x'")(multiJoin(Seq(a, a), Seq("k"), suffixes = Seq("_x", "_x")))
    fails("The indicator 'V' has the name of a column")(
      multiJoin(Seq(a, b), Seq("k"), indicator = "V"))
    fails("suffixes must have 2 entries, one for each input, not 1.")(
      multiJoin(Seq(a, b), Seq("k"), suffixes = Seq("_x")))
  }

  test("a failed job does not change the session") {
    val failing = spark.range(3).selectExpr("id AS k", "raise_error('no') AS v")
    intercept[Exception](fullJoin("k")(failing, b).collect())
    checkJoin(fullJoin("k")(a, b))
    assert(PythonApi.isOperatorAvailable(spark))
  }
}
