package io.github.skewext.join.exec

import io.github.skewext.MultiJoinTest


import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._

/** One DataFrame at several places: as several inputs, above the join, and in joins of joins. */
class SameInputsSuite extends MultiJoinTest {

  private def t: DataFrame = table("k, v", "(1, 1), (1, 2), (2, 3), (null, 4)")

  test("the same DataFrame several times") {
    val df = t
    checkFullJoin("k")(df, df)
    checkFullJoin("k")(df, df, df)
    checkFullJoin("k", "v")(df, df, df)
    checkJoin(
      multiJoin(
        Seq(df, df, df),
        Seq("k"),
        roles = Seq("optional", "required", "optional"),
        indicator = "i"))
    checkJoin(multiJoin(Seq(df, df), Seq("k"), roles = Seq("optional", "excluded")))
    checkJoin(multiJoin(Seq(df, df), Seq("k"), Seq(Seq("k"), Seq("v")), suffixes = Seq("", "_2")))
  }

  test("DataFrames that are made of one another", Slow) {
    val df = t
    checkFullJoin("k")(df, df.where("v > 1"), df.groupBy("k").agg(sum("v").as("s")))
    checkFullJoin("k")(df.where("v > 1"), df, df.select("k"))
    checkFullJoin("k")(df.select("v", "k"), df.as("alias"), df.select(col("k"), col("v").as("v2")))
    checkFullJoin("k")(df, df.select(col("v").as("k"), col("k").as("v")))
    checkFullJoin("k")(df, df.union(df), df.join(df.select("k"), "k"))
    // An alias that changes nothing is removed by the optimizer, and must not bring the ids back.
    checkFullJoin("k")(df, df.select(col("k").as("k"), col("v").as("v")))
  }

  test("a column that is there twice") {
    val df = t
    checkFullJoin("k")(df.select("k", "v", "v"), table("k, w", "(1, 10), (3, 30)"))
    checkFullJoin("k")(df.select("k", "v", "v"), df)
    checkFullJoin("k")(df, df.select("v", "k", "v"), df)
  }

  test("joins of joins", Slow) {
    val df = t
    val other = table("k, w", "(2, 20), (3, 30)")
    val joined = fullJoin("k")(df, other)
    checkFullJoin("k")(joined, df)
    checkFullJoin("k")(df, joined)
    checkFullJoin("k")(joined, joined)
    checkFullJoin("k")(joined, other, fullJoin("k")(other, df, df))
    val nested =
      fullJoin("k")(joined, fullJoin("k")(table("k, x", "(1, 1)"), table("k, y", "(2, 2)")))
    checkJoin(nested)
    // The inner joins leave their keys where the outer one wants them.
    assert(operators(nested).size === 3)
    assert(exchanges(nested).size === 4)
  }

  test("the result in joins, unions, and set operations with itself and its inputs", Slow) {
    val df = t
    val joined = fullJoin("k")(df, table("k, w", "(2, 20), (3, 30)"))
    checkJoin(joined.join(joined, "k"))
    checkJoin(joined.as("a").join(joined.as("b"), col("a.k") === col("b.w") / 10, "left"))
    checkJoin(joined.join(df, Seq("k"), "left_anti"))
    checkJoin(joined.join(df, joined("k") === df("k"), "full"))
    checkJoin(joined.union(joined))
    checkJoin(joined.except(joined.where("k = 1")))
    checkJoin(joined.intersect(joined))
    checkJoin(joined.crossJoin(joined))
    checkJoin(joined.where("k is not null").join(joined.select("k").distinct(), "k"))
  }

  test("views, common table expressions and subqueries", Slow) {
    withTempView("joined", "t") {
      val df = t
      df.createOrReplaceTempView("t")
      val other = table("k, w", "(2, 20), (3, 30)")
      fullJoin("k")(df, other).createOrReplaceTempView("joined")
      for {
        query <- Seq(
          "SELECT * FROM joined",
          "SELECT a.k, b.w FROM joined a JOIN joined b ON a.k = b.k",
          "WITH j AS (SELECT * FROM joined WHERE k > 0) SELECT * FROM j UNION ALL SELECT * FROM j",
          "SELECT k, (SELECT max(w) FROM joined) FROM t",
          "SELECT * FROM t WHERE k IN (SELECT k FROM joined WHERE w > 0)",
          "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM joined j WHERE j.k = t.k AND j.w > 0)",
          "SELECT *, (SELECT sum(w) FROM joined j WHERE j.k = t.k) FROM t")
      } withClue(query)(checkJoin(sql(query)))

      val cte = sql("WITH c AS (SELECT k, v FROM t WHERE v > 1) SELECT * FROM c JOIN c d USING (k)")
      checkFullJoin("k")(cte, cte, df)
    }
  }

  test("hints, lateral views, windows and aggregates below") {
    val df = t
    checkFullJoin("k")(
      df.hint("broadcast"),
      df.hint("merge").withColumn("e", explode(array(lit(1), lit(2)))),
      df.groupBy("k").agg(collect_list("v").as("vs")),
      df.selectExpr("k", "row_number() OVER (PARTITION BY k ORDER BY v) AS n"),
      df.orderBy("v").limit(3),
      df.distinct())
  }

  test("keys that are constants or computed") {
    checkFullJoin("k")(
      table("v", "(1), (2)").withColumn("k", lit(1)),
      table("w", "(1), (2)").withColumn("k", col("w") * 2 - 1),
      table("x", "(1), (2)").withColumn("k", lit(null).cast("int")),
      table("y", "(1)").withColumn("k", lit(1)))
  }
}
