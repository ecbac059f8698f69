package io.github.skewext.join.range

import io.github.skewext.explain.Explainer
import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.internal.SQLConf

/** Range joins of two large sides are joins on the numbers of ranges of values. */
class CutRangeJoinsSuite extends RangeJoinTest {

  override protected def sparkConf: SparkConf = super.sparkConf
    .set(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key, "-1")
    .set(SkewConf.RANGE_JOIN_MIN_PAIRS.key, "0")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    // Values are dense in places. Some intervals are long, and one contains everything.
    spark
      .range(0, 3000, 1, 3)
      .selectExpr(
        "id",
        "if(id % 50 = 7, null, bigint(pmod(hash(id), 300) * pmod(hash(id), 300))) AS t")
      .createOrReplaceTempView("p")
    spark
      .range(0, 500, 1, 2)
      .selectExpr(
        "id",
        "bigint(pmod(hash(id, 3), 300) * pmod(hash(id, 3), 300)) AS lo",
        "id % 9 AS w")
      .selectExpr(
        "id",
        "if(id = 77, -5, lo) AS lo",
        "CASE WHEN id = 77 THEN 100000L WHEN id % 40 = 3 THEN lo - 20 WHEN id % 31 = 1 THEN null " +
          "WHEN id % 25 = 2 THEN lo + 30000 ELSE lo + w * w END AS hi")
      .createOrReplaceTempView("i")
  }

  private def cut(query: String): DataFrame = {
    val df = spark.sql(query)
    assertSameRows(df.collect().toSeq, rowsWhenOff(df), query)
    assert(cuts(df).size === 1, df.queryExecution.executedPlan)
    df
  }

  private def whole(query: String): DataFrame = {
    val df = spark.sql(query)
    assertSameRows(df.collect().toSeq, rowsWhenOff(df), query)
    assert(cuts(df).isEmpty, df.queryExecution.executedPlan)
    df
  }

  private val In = "p.t >= i.lo AND p.t < i.hi"
  private val Open = "p.t >= i.lo AND (i.hi IS NULL OR p.t < i.hi)"

  test("points in intervals, all join types that keep points, few and many ranges") {
    for {
      on <- Seq(In, Open)
      (partitions, adaptive) <- Seq("3" -> "true", "40" -> "false")
    } withSQLConf(
      SQLConf.SHUFFLE_PARTITIONS.key -> partitions,
      SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> adaptive) {
      for (how <- Seq("INNER", "LEFT"))
        cut(s"SELECT p.id, p.t, i.id FROM p $how JOIN i ON $on")
      for (how <- Seq("LEFT SEMI", "LEFT ANTI"))
        cut(s"SELECT p.id FROM p $how JOIN i ON $on AND p.id % 3 <> i.id % 3")
      cut(s"SELECT p.id, i.lo FROM i RIGHT JOIN p ON $on")
    }
  }

  test("overlapping intervals, and one that contains all others") {
    for (on <- Seq("a.lo < b.hi AND b.lo < a.hi", "a.lo <= b.hi AND b.lo <= a.hi AND a.id < b.id"))
      cut(s"SELECT a.id, b.id FROM i a JOIN i b ON $on")
  }

  test("bands", Slow) {
    cut("SELECT a.id, b.id FROM p a JOIN i b ON abs(a.t - b.lo) <= 30")
    cut("SELECT a.id, b.id FROM p a LEFT JOIN i b ON a.t BETWEEN b.lo - 9 AND b.lo + 9")
  }

  test("outer sides with rows in several ranges, and small or hinted sides, stay whole", Slow) {
    for (query <- Seq(
        s"SELECT p.id, i.id FROM p RIGHT JOIN i ON $In",
        s"SELECT p.id, i.id FROM p FULL JOIN i ON $In",
        s"SELECT i.id FROM i LEFT SEMI JOIN p ON $In",
        "SELECT a.id, b.id FROM p a LEFT JOIN i b ON abs(a.t - b.lo) <= 30",
        s"SELECT /*+ BROADCAST(i) */ p.id, i.id FROM p JOIN i ON $In",
        s"SELECT p.id, i.id FROM p JOIN i ON $In AND p.id = i.id"))
      whole(query)
    val query = s"SELECT p.id, i.id FROM p JOIN i ON $In"
    for (off <- Seq(
        SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "10MB",
        SkewConf.RANGE_JOIN_MIN_PAIRS.key -> "100000000",
        SkewConf.RANGE_JOIN_ENABLED.key -> "false",
        SkewConf.EXCLUDED_RULES.key -> CutRangeJoins.ruleName,
        // Each side would sample its own bounds.
        SQLConf.SUBQUERY_REUSE_ENABLED.key -> "false"))
      withSQLConf(off)(whole(query))
  }

  test("ends of two integral types") {
    cut("SELECT p.id, i.id FROM p JOIN i ON int(p.t) >= int(i.lo) AND p.t < i.hi")
  }

  test("ends of two kinds are no intervals on one line") {
    whole("SELECT a.id, b.id FROM a JOIN b ON a.int_s <= b.int_e AND b.text_s <= a.text_e")
  }

  test("a query with the names of files is not cut") {
    withTable("files") {
      spark.table("p").write.saveAsTable("files")
      whole(s"SELECT p.id, input_file_name(), i.id FROM files p LEFT JOIN i ON $In")
      cut(s"SELECT p.id, i.id FROM files p LEFT JOIN i ON $In")
    }
  }

  test("explain shows the cut") {
    val df = cut(s"SELECT p.id, i.id FROM p JOIN i ON $In")
    val origin = Explainer.explain(df.queryExecution).joins.head.origin
    assert(origin.text.startsWith("range join (point in interval) became a join on equal keys"))
  }

  test("bounds are the same for each order of the sample") {
    val keys = Array.tabulate(1000)(i => (i * 7919L) % 1000 - 300)
    val bounds = TouchedRanges.bounds(keys, 10)
    assert(bounds === TouchedRanges.bounds(keys.reverse ++ keys, 10))
    assert(bounds.length === 9)
    assert(TouchedRanges.bounds(Array.empty, 10).isEmpty)
    assert(TouchedRanges.bounds(Array(5L, 5L), 10).isEmpty)
    assert(Seq(-301L, -200L, 699L).map(TouchedRanges.numberOf(_, bounds)) === Seq(0, 1, 9))
  }
}
