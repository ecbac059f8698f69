package io.github.skewext

import io.github.skewext.implicits._

import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.{AnalysisException, DataFrame}

/** The functions of Scala, with arguments that docs/scala.md does not show. */
class ScalaApiSuite extends MultiJoinTest {

  private lazy val a = table("k, day, v", "(1, 1, 'a'), (2, 1, 'b'), (null, 1, 'c')")
  private lazy val b = table("k, day, v", "(2, 1, 'd'), (3, 2, 'e')")
  private lazy val c = table("id, date, w", "(1, 1, 'f'), (3, 2, 'g')")

  private def assertSame(actual: DataFrame, expected: DataFrame): Unit = {
    assert(actual.schema === expected.schema)
    assertSameRows(actual.collect().toSeq, expected.collect().toSeq, "Python's entry point")
  }

  test("a join on several keys, with suffixes, roles by name and other key names", Slow) {
    val keys = Seq(Seq("k", "day"), Seq("k", "day"), Seq("id", "date"))
    val suffixes = Seq("_1", null, "_3")
    for ((how, roles) <- Seq(
        Seq("full") -> Seq("optional", "optional", "optional"),
        Seq("LEFT") -> Seq("required", "optional", "optional"),
        Seq("inner") -> Seq("required", "required", "required"),
        Seq("required", "Optional", "excluded") -> Seq("required", "optional", "excluded"))) {
      val expected = multiJoin(Seq(a, b, c), keys.head, keys, roles, suffixes, "from")
      val others = Seq[JoinInput](b, c -> keys(2))
      assertSame(a.multiJoin(others, keys.head, how, suffixes, "from"), expected)
    }
    checkJoin(a.multiFullJoin(Seq(b), Seq("k")))
  }

  test("typed Datasets are inputs, too") {
    val encoders = spark
    import encoders.implicits._
    val typed = Seq((1, "x"), (4, "y")).toDS()
    val joined = typed.multiFullJoin(Seq(c -> "id"), Seq("_1"))
    assertSame(joined, multiJoin(Seq(typed.toDF(), c), Seq("_1"), Seq(Seq("_1"), Seq("id"))))
  }

  test("as-of joins on other keys of the spine, forward, and without exact matches") {
    val versions = table("k, at, n", "(1, 1, 1), (1, 2, 2), (1, 2, 3), (2, 5, 4)")
    val spine = table("key, other, t", "(1, 2, 1), (2, 1, 2), (7, 1, 5)")
    def rows(of: AsOf, how: String = "left") =
      spine
        .asOfJoin(Seq(of), Seq("key"), "t", how)
        .select("key", "n")
        .collect()
        .map(_.toString)
        .toSet
    val backward = AsOf.of(versions, "at").on("k")
    assert(rows(backward) === Set("[1,1]", "[2,null]", "[7,null]"))
    assert(rows(backward.allowExactMatches(false)) === Set("[1,null]", "[2,null]", "[7,null]"))
    assert(rows(backward.direction("forward"), "inner") === Set("[1,1]", "[2,4]"))
    assert(rows(backward.direction("forward").tolerance(lit(2)), "inner") === Set("[1,1]"))
    assert(rows(backward.onSpine("other"), "inner") === Set("[2,3]", "[7,3]"))
    val least = backward.onSpine("other").ties(versions("n").asc)
    assert(rows(least, "inner") === Set("[2,2]", "[7,2]"))
    val sameName = AsOf.of(versions.withColumnRenamed("n", "t"), "at").on("k")
    intercept[AnalysisException](spine.asOfJoin(Seq(sameName), Seq("key"), "t"))
    val suffixed = spine.asOfJoin(Seq(sameName), Seq("key"), "t", suffixes = Seq("", "_2"))
    assert(suffixed.columns === Array("key", "other", "t", "at", "t_2"))
  }

  test("the latest row with an order and ties") {
    val rows = table("k, n, m", "(1, 1, 1), (1, 1, 2), (1, 2, 3)")
    val latest = rows.latest(Seq("k"), Seq(rows("n").asc), Seq(rows("m").asc))
    assert(latest.collect().map(_.toString) === Array("[1,1,1]"))
  }

  test("skew joins on a key of several columns, with hot keys") {
    val salted = Technique.of("salted").hotKeys(Seq(1, 1))
    val stock = a.join(b, Seq("k", "day"), "full")
    assertSame(a.skewJoin(b, Seq("k", "day"), "full", salted), stock)
    assertSame(a.skewJoin(b, Seq("k", "day")), a.join(b, Seq("k", "day")))
    val condition = a("k") === c("id")
    assertSame(a.skewJoin(c, condition, "left", Technique.of("none")), a.join(c, condition, "left"))
    val error = intercept[AnalysisException] {
      a.skewJoin(b, Seq("k"), technique = Technique.of("salted").option("salt", 8))
    }
    assert(error.getMessage.contains("has no option 'salt'"))
  }

  test("explanations as text, of queries with joins and without") {
    assert(a.explainJoins.toString === "No joins.")
    val joined = a.multiFullJoin(Seq(b, c -> "id"), Seq("k"))
    val text = joined.explainJoins.toString
    assert(text.startsWith("Join 1: full outer join of 3 inputs on [k]\n  asked for"), text)
    assert(text.contains("\n  skew: not run: "), text)
  }
}
