package io.github.skewext.explain

import io.github.skewext.skew.plan.SkewReason

/** `explain` of joins in subqueries, caches, commands and in each other. */
class ExplainPlacesSuite extends ExplainTest {

  test("joins in subqueries, unions, common table expressions and commands") {
    left().createOrReplaceTempView("l")
    skewed(1, 60).createOrReplaceTempView("r")
    val places = explain(spark.sql("""WITH c AS (SELECT l, v1 FROM l FULL JOIN r ON l = k)
        |SELECT l, (SELECT max(v1) FROM l JOIN r ON l = k) AS m FROM c
        |UNION ALL SELECT l, 0 FROM l LEFT ANTI JOIN r ON l = k""".stripMargin)).joins
    assert(places.map(_.place).sorted === Seq(Place.Query, Place.Query, Place.Subquery))
    assert(
      places.map(_.title.split(" \\[").head).toSet ===
        Set("SortMergeJoin full outer", "SortMergeJoin left anti", "SortMergeJoin inner"))
    assert(places.map(_.number) === Seq(1, 2, 3))
    withTable("made", "into") {
      spark.sql("CREATE TABLE into (l BIGINT, v1 BIGINT) USING parquet")
      val insert = spark.sql("INSERT INTO into SELECT l, v1 FROM l FULL JOIN r ON l = k")
      assert(one(insert).place === Place.Command)
      assert(one(insert).skew.map(_.text) === Seq(SkewReason.NotSkewed.text))
      val made =
        spark.sql("CREATE TABLE made USING parquet AS SELECT l, v1 FROM l FULL JOIN r ON l = k")
      assert(one(made).place === Place.Command)
    }
  }

  test("a join that Spark takes out while the query runs") {
    val df = stock(left().where("v0 < 0 or l is null and l is not null or v0 > 1000"), "inner")
    assert(explain(df).joins.size === 1)
    assert(explain(df).notes.isEmpty)
    df.collect()
    val explanation = explain(df)
    assert(explanation.joins.isEmpty)
    assert(explanation.notes.head.startsWith("A join is not in the plan any more"))
  }

  test("joins in cached data") {
    val cached = three.cache()
    try {
      val above = cached.groupBy("k").count()
      assert(one(above).place === Place.Cached)
      assert(one(cached).place === Place.Cached)
      assert(one(above).skew.map(_.status) === Seq(ExplainedSkew.NotRun))
      above.collect()
      assert(one(above).skew.map(_.text) === Seq(SkewReason.NotSkewed.text))
      assert(explain(cached.union(cached)).joins.size === 1)
    } finally {
      cached.unpersist(blocking = true)
    }
  }

  test("a join of joins: inputs are called by their number") {
    val joins = explain(fullJoin("k")(three.drop("s0", "s1", "s2"), skewed(3, 60))).joins
    assert(joins.size === 2 || joins.map(_.inputs.size) === Seq(4), joins)
    if (joins.size == 2) assert(joins.head.inputs.map(_.source) === Seq("join 2", "Range"))
  }

  test("joins that Spark makes of EXISTS") {
    skewed(0, 60).createOrReplaceTempView("a")
    skewed(1, 60).createOrReplaceTempView("b")
    val exists =
      spark.sql("SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k) OR a.v0 = 1")
    assert(one(exists).title.contains("existence"))
  }
}
