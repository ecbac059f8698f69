package io.github.skewext.join

import io.github.skewext.MultiJoinTest


import org.apache.spark.sql.Row

/** The answer of the join, as the semantics define it: rows, values and columns. */
class MultiFullJoinSuite extends MultiJoinTest {

  override protected def generatesCode: Boolean = true

  private def names(column: String, keys: String*) =
    table(s"k, $column", keys.map(k => s"('$k', '$column of $k')").mkString(", "))

  test("matches the other inputs on a key that the first input lacks", Slow) {
    val inputs =
      Seq(names("a", "key1", "key2"), names("b", "key3"), names("c", "key3"), names("d", "key3"))
    val joined = checkFullJoin("k")(inputs: _*)
    checkAnswer(
      joined.select("k", "b", "c", "d"),
      Seq(
        Row("key1", null, null, null),
        Row("key2", null, null, null),
        Row("key3", "b of key3", "c of key3", "d of key3")))
    // A chain that compares every input with the first one is another query, with five rows.
    val byFirst = inputs
      .map(_.withColumnRenamed("k", "id"))
      .zipWithIndex
      .map { case (df, i) => df.withColumnRenamed("id", s"k$i") }
      .reduceLeft((l, r) => l.join(r, l("k0") === r(r.columns.head), "full"))
    assert(byFirst.count() === 5)
  }

  test("returns keys of both inputs, and of either one") {
    val joined = checkFullJoin("k")(names("a", "1", "2"), names("b", "2", "3"))
    assert(joined.columns === Array("k", "a", "b"))
    checkAnswer(
      joined,
      Seq(Row("1", "a of 1", null), Row("2", "a of 2", "b of 2"), Row("3", null, "b of 3")))
  }

  test("a null key matches nothing, not even a null key") {
    val joined = checkFullJoin("k")(
      table("k, a", "(null, 1), (null, 2), (1, 3)"),
      table("k, b", "(null, 10), (1, 30)"),
      table("k, c", "(cast(null as int), 100)"))
    checkAnswer(
      joined,
      Seq(
        Row(null, 1, null, null),
        Row(null, 2, null, null),
        Row(null, null, 10, null),
        Row(null, null, null, 100),
        Row(1, 3, 30, null)))
  }

  test("a key with a null in one column matches nothing, and its other columns are returned") {
    val joined = checkFullJoin("k", "l")(
      table("k, l, a", "(1, null, 1), (null, 1, 2), (null, null, 3), (1, 1, 4)"),
      table("k, l, b", "(1, null, 10), (null, 1, 20), (null, null, 30), (1, 1, 40)"))
    checkAnswer(
      joined.where("b is null"),
      Seq(Row(1, null, 1, null), Row(null, 1, 2, null), Row(null, null, 3, null)))
    assert(joined.count() === 7)
  }

  test("returns the product of duplicate keys") {
    def input(column: String, copies: (Int, Int)*) = {
      val rows = for ((key, n) <- copies; i <- 1 to n) yield s"($key, ${key * 100 + i})"
      table(s"k, $column", rows.mkString(", "))
    }
    val joined = checkFullJoin("k")(
      input("a", 1 -> 3, 2 -> 1, 3 -> 2),
      input("b", 1 -> 4, 2 -> 2, 4 -> 5),
      input("c", 1 -> 2, 2 -> 3, 3 -> 7))
    checkAnswer(joined.groupBy("k").count(), Seq(Row(1, 24L), Row(2, 6L), Row(3, 14L), Row(4, 5L)))
  }

  test("keeps all rows that are equal in all columns") {
    checkFullJoin("k")(
      table("k, a", "(1, 1), (1, 1), (2, 2), (null, 3), (null, 3)"),
      table("k, b", "(1, 1), (1, 1), (1, 1)"))
  }

  test("composite keys match on all of their columns") {
    val joined = checkFullJoin("k", "l", "m")(
      table("k, l, m, a", "(1, 'x', true, 1), (1, 'x', false, 2), (2, 'x', true, 3)"),
      table("m, a2, l, k", "(true, 10, 'x', 1), (true, 20, 'y', 1)"),
      table("l, k, m", "('x', 1, true), ('y', 1, true), ('z', 9, false)"))
    assert(joined.columns === Array("k", "l", "m", "a", "a2"))
    assert(joined.count() === 5)
  }

  test("does not confuse the bytes of neighbouring key columns") {
    checkFullJoin("k", "l")(
      table("k, l, a", "('a', 'bc', 1), ('ab', 'c', 2), ('', 'abc', 3)"),
      table("k, l, b", "('ab', 'c', 10), ('abc', '', 20), ('', 'abc', 30)"))
  }

  test("joins on keys with different names in the inputs") {
    val t1 = table("k, l, a", "(1, 'x', 1), (2, 'y', 2)")
    val t2 = table("other, b, l2", "(1, 10, 'x'), (3, 30, 'z')")
    val joined =
      multiJoin(Seq(t1, t2), Seq("key", "letter"), Seq(Seq("k", "l"), Seq("other", "l2")))
    assert(joined.columns === Array("key", "letter", "a", "b"))
    checkJoin(joined)
    checkAnswer(joined, Seq(Row(1, "x", 1, 10), Row(2, "y", 2, null), Row(3, "z", null, 30)))
  }

  test("accepts a value column with the name of another input's key") {
    val joined = multiJoin(
      Seq(table("k, id", "(1, 7), (2, 8)"), table("id, k", "(1, 5)")),
      Seq("k"),
      Seq(Seq("k"), Seq("id")))
    assert(joined.columns === Array("k", "id", "k"))
    checkJoin(joined)
    assert(joined.collect().toSet === Set(Row(1, 7, 5), Row(2, 8, null)))
  }

  test("joins up to three inputs of all roles, with nulls and duplicates", Slow) {
    val inputs = Seq(
      table("k, l, a", "(1, 1, 1), (1, 1, 2), (2, 2, 3), (3, 3, 4), (4, 4, 5), (null, 1, 6)"),
      table("k, l, b", "(1, 1, 1), (2, 2, 2), (2, 2, 3), (5, 5, 4), (1, null, 5), (null, 1, 6)"),
      table("k, l, c", "(1, 1, 1), (3, 3, 2), (5, 5, 3), (6, 6, 4), (null, null, 5)"))
    val all = Seq("optional", "required", "excluded")
    val pairs = for (a <- all; b <- all) yield Seq(a, b)
    val triples = for (p <- pairs; c <- all) yield p :+ c
    for (roles <- pairs ++ some(6, triples) if roles.exists(_ != "excluded"))
      withClue(roles.mkString(", ")) {
        val joined =
          multiJoin(inputs.take(roles.size), Seq("k", "l"), roles = roles, indicator = "i")
        // The indicator of each row must agree with the roles.
        val column = joined.columns.indexOf("i")
        checkJoin(joined).map(_.getSeq[Int](column)).foreach { present =>
          assert(present.nonEmpty)
          roles.zipWithIndex.foreach {
            case ("required", i) => assert(present.contains(i))
            case ("excluded", i) => assert(!present.contains(i))
            case _ =>
          }
        }
      }
  }

  test("roles of two inputs return the rows of SQL's joins", Slow) {
    val l = table("k, a", "(1, 1), (1, 2), (2, 3), (3, 4), (null, 5)")
    val r = table("k, b", "(1, 10), (2, 20), (2, 30), (4, 40), (null, 50)")
    for {
      (roles, how) <- Seq(
        Seq("required", "required") -> "inner",
        Seq("required", "optional") -> "left",
        Seq("optional", "required") -> "right",
        Seq("optional", "optional") -> "full",
        Seq("optional", "excluded") -> "left_anti",
        Seq("required", "excluded") -> "left_anti")
    } withClue(how) {
      val joined = multiJoin(Seq(l, r), Seq("k"), roles = roles)
      val stock = l.join(r, Seq("k"), how)
      assert(joined.columns === stock.columns)
      assertSameRows(checkJoin(joined), stock.collect().toSeq, how)
    }
  }

  test("the indicator lists the inputs that have the key, also for null keys") {
    val joined = multiJoin(
      Seq(
        table("k, a", "(1, 1), (2, 2), (2, 3), (null, 4)"),
        table("k, b", "(2, 1), (3, 2), (null, 3)"),
        table("k, c", "(3, 1), (1, 2)")),
      Seq("k"),
      indicator = "sources")
    assert(joined.columns.last === "sources")
    checkJoin(joined)
    checkAnswer(
      joined.groupBy("k", "sources").count(),
      Seq(
        Row(1, Seq(0, 2), 1L),
        Row(2, Seq(0, 1), 2L),
        Row(3, Seq(1, 2), 1L),
        Row(null, Seq(0), 1L),
        Row(null, Seq(1), 1L)))
  }

  test("adds suffixes only to names that occur in several inputs") {
    val t1 = table("k, v, a", "(1, 1, 1)")
    val t2 = table("k, v, b", "(1, 2, 2)")
    val t3 = table("id, v, k", "(1, 3, 3)")
    val keys = Seq(Seq("k"), Seq("k"), Seq("id"))
    def columns(suffixes: String*) = {
      val joined = multiJoin(Seq(t1, t2, t3), Seq("k"), keys, suffixes = suffixes)
      assert(checkJoin(joined) === Seq(Row(1, 1, 1, 2, 2, 3, 3)))
      joined.columns.toSeq
    }
    assert(columns("_1", "_2", "_3") === Seq("k", "v_1", "a", "v_2", "b", "v_3", "k_3"))
    assert(columns(null, "_2", "_3") === Seq("k", "v", "a", "v_2", "b", "v_3", "k_3"))
    assert(columns("", "_2", "_3") === Seq("k", "v", "a", "v_2", "b", "v_3", "k_3"))
  }

  test("keeps duplicate names without suffixes, as DataFrame.join does") {
    checkFullJoin("k")(
      table("k, v", "(1, 1), (2, 2)"),
      table("k, v", "(2, 20), (3, 30)"),
      table("k, v", "(3, 300)"))
  }

  test("treats names that differ in case as one, unless the session is case-sensitive") {
    val t1 = table("K, v", "(1, 1), (2, 2)")
    val t2 = table("k, V", "(2, 20), (3, 30)")
    val insensitive = multiJoin(Seq(t1, t2), Seq("k"), suffixes = Seq("_1", "_2"))
    assert(insensitive.columns === Array("k", "v_1", "V_2"))
    checkJoin(insensitive)
    withSQLConf("spark.sql.caseSensitive" -> "true") {
      intercept[org.apache.spark.sql.AnalysisException](fullJoin("k")(t1, t2))
      val sensitive =
        multiJoin(Seq(t1, t2), Seq("k"), Seq(Seq("K"), Seq("k")), suffixes = Seq("_1", "_2"))
      assert(sensitive.columns === Array("k", "v", "V"))
      checkJoin(sensitive)
    }
  }

  test("a column name with a dot, a space, or a backtick needs no quoting") {
    val t1 = table("`a.b`, `v w`, ```x`", "(1, 1, 1)")
    val t2 = table("`a.b`, `v w`, ```x`", "(1, 2, 2), (2, 3, 3)")
    val joined = multiJoin(Seq(t1, t2), Seq("a.b"), suffixes = Seq("_1", "_2"))
    assert(joined.columns === Array("a.b", "v w_1", "`x_1", "v w_2", "`x_2"))
    checkJoin(joined)
  }

  test("joins inputs without value columns") {
    val joined = checkFullJoin("k")(
      table("k", "(1), (1), (2)"),
      table("k", "(2), (3)"),
      table("k", "(null), (1)"))
    assert(joined.count() === 5)
  }
}
