package io.github.skewext.asof

import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.{DataFrame, Row}

/** ANSI mode: casts of the versions that fail for rows that the query of the versions drops. */
class AsOfFailingKeysSuite extends AsOfTest {

  override protected def generatesCode: Boolean = testAll

  private def spine: DataFrame = table("k, t", "(5, 10), (6, 20), (null, 30)")

  private def raw: DataFrame = table(
    "s, at, v",
    "('5', '8', 'x'), ('5', '11', 'y'), ('7', '1', 'z'), ('abc', 'no time', 'w'), (null, '9', 'n')")

  private def valid: DataFrame = table("s", "('5'), ('7')")

  private val matched = Seq(Row(5, 10, "x"), Row(6, 20, null), Row(null, 30, null))

  private def joined(spine: DataFrame, versions: DataFrame, tolerance: String = null): DataFrame =
    asOf(spine, "t")(Versions(versions, "at", tolerance = tolerance)).select("k", "t", "v")

  private def filters(df: DataFrame): Seq[String] =
    df.queryExecution.optimizedPlan.collect { case f: Filter => f.condition.sql }

  private def withAnsi(body: => Unit): Unit = withSQLConf("spark.sql.ansi.enabled" -> "true")(body)

  test("a key that the join casts, and one that the versions cast") {
    withAnsi {
      val text = raw.join(valid, "s").selectExpr("s AS k", "INT(at) AS at", "v")
      checkAnswer(joined(spine, text), matched)
      val numbers = raw.join(valid, "s").selectExpr("INT(s) AS k", "INT(at) AS at", "v")
      checkAnswer(joined(spine, numbers), matched)
      checkAnswer(joined(spine.where("k = 5"), numbers), matched.take(1))
    }
  }

  test("a key and a time that the spine casts") {
    withAnsi {
      val rows = raw.join(valid, "s").selectExpr("INT(s) AS k", "INT(at) AS t", "v")
      val df = asOf(rows, "t", "inner")(Versions(table("k, at, w", "(5, 7, 'a')"), "at"))
      checkAnswer(df.select("t", "v", "w"), Seq(Row(8, "x", "a"), Row(11, "y", "a")))
    }
  }

  test("a time that the versions cast") {
    withAnsi {
      val versions = raw.join(valid, "s").selectExpr("INT(s) AS k", "INT(at) AS at", "v")
      checkAnswer(joined(spine.where("t <= 20"), versions), matched.take(2))
      checkAnswer(joined(spine.where("t >= 10"), versions, tolerance = "3"), matched)
    }
  }

  test("predicates reach versions whose casts fail for no other rows") {
    withAnsi {
      val rows = raw.where("s <> 'abc'").selectExpr("INT(s) AS k", "INT(at) AS at", "v")
      for (versions <- Seq(rows, rows.join(table("v", "('x'), ('y')"), "v"))) {
        val df = joined(spine.where("k = 5 AND t <= 20"), versions)
        checkAnswer(df, matched.take(1))
        assert(filters(df).count(_.contains("= 5")) === 2, df.queryExecution.optimizedPlan)
        assert(filters(df).count(_.contains("<= 20")) === 2, df.queryExecution.optimizedPlan)
      }
    }
  }
}
