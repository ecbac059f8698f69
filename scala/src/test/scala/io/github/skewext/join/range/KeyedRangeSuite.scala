package io.github.skewext.join.range

import io.github.skewext.Joins
import io.github.skewext.join.probe.BuildProbeJoinExec
import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf
import org.apache.spark.sql.internal.SQLConf

/** Joins with equal keys beside a range: keys with many rows are searched by the range. */
class KeyedRangeSuite extends RangeJoinTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key, "-1")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    keyedViews()
  }

  private val ranges = Seq(
    "a.t >= b.t AND a.t < b.u",
    "a.t BETWEEN b.t - 5 AND b.t + 5 AND a.id % 3 <> b.id % 3",
    "abs(a.t - b.t) <= 4",
    "a.t < b.u AND b.t < a.u",
    "a.t < b.t AND a.id % 30 = b.id % 30",
    "a.t >= b.u AND a.id % 30 = b.id % 30",
    "(a.t > b.t OR b.t IS NULL) AND a.id % 30 = b.id % 30",
    "a.text_s < b.text_s AND a.id % 30 = b.id % 30",
    "a.text_s BETWEEN concat('a', b.text_s) AND concat('q', b.text_e) AND a.id % 30 = b.id % 30",
    "(b.t IS NULL OR a.t >= b.t) AND (a.t < b.u OR a.t IS NULL)",
    "(a.t < b.t OR a.t IS NULL OR b.t IS NULL) AND a.id % 30 = b.id % 30",
    "(b.t IS NULL OR a.t >= b.t OR a.t IS NULL) AND (a.t IS NULL OR a.t < b.u OR b.u IS NULL)",
    "a.text_s >= b.text_s AND a.text_s < b.text_e AND a.id % 3 <> b.id % 3")

  // How tasks find the rows of a key.
  private val memory = Map(
    "table" -> Nil,
    "sorted late" -> Seq(
      SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key -> "50",
      SkewConf.MULTI_JOIN_GROUP_ROWS_IN_MEMORY.key -> "2"),
    "sorted, equal hashes" -> Seq(
      SkewConf.MULTI_JOIN_GROUPING.key -> "sort",
      SkewConf.MULTI_JOIN_HASH_BITS.key -> "2"))

  private val cases = for {
    joinType <- joinTypes
    range <- ranges
    sides <- Seq("x" -> "y", "y" -> "x")
    columns <- Seq("true", "false")
    isCompiled <- Seq(true, false)
    rows <- memory.keys.toSeq
  } yield (joinType, range, sides, columns, isCompiled, rows)

  private def probes(df: org.apache.spark.sql.DataFrame): Seq[BuildProbeJoinExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case join: BuildProbeJoinExec => join }

  private def joined(joinType: String, range: String, a: String, b: String) =
    query(joinType, s"a.k = b.k AND $range", a = a, b = b).replace("a.k > 2", "a.id > 300")

  test("rows are those of Spark's join, and long keys are searched by range") {
    val (ofTables, sorted) = cases.partition(_._6 == "table")
    covering(ofTables) ++ covering(sorted) ++ some(if (testSlow) 40 else 2, cases) foreach {
      case given @ (joinType, range, (a, b), columns, isCompiled, rows) =>
        val compiled = if (isCompiled) GeneratedCode else Interpreted
        val settings = (compiled ++ memory(rows)) :+ (SkewConf.SHUFFLE_ENABLED.key -> columns)
        withClue(s"$given: ") {
          withSQLConf(settings: _*) {
            val df = spark.sql(joined(joinType, range, a, b))
            val found = df.collect().toSeq
            assert(probes(df).map(_.metrics("numIndexed").value).sum > 0)
            assert((probes(df).map(_.metrics("numSorted").value).sum > 0) === (rows != "table"))
            assertSameRows(found, rowsWhenOff(df), "the same query with skewext off")
          }
        }
    }
  }

  test("without a range, or if it is switched off, chains are read") {
    for (range <- Seq("a.t < b.t", "a.t <> b.t", "a.t >= b.t AND a.t < b.u")) {
      withSQLConf(SkewConf.RANGE_JOIN_ENABLED.key -> "false") {
        val df = spark.sql(joined("LEFT SEMI", range, "x", "y"))
        df.collect()
        assert(probes(df).map(_.metrics("numIndexed").value) === Seq(0))
        assert(!Joins.explain(df).toString.contains("searched by range"))
      }
    }
  }

  test("a comparison in one direction tests only rows on one side of the value") {
    val df = spark.sql(joined("INNER", "a.t < b.t", "x", "y"))
    df.collect()
    assert(probes(df).map(_.metrics("numIndexed").value).sum > 0)
    assert(
      Joins
        .explain(df)
        .toString
        .contains("keys with many rows are searched by range, comparison ("))
  }

  test("the explanation has the form of the range and the number of keys") {
    val df = spark.sql(joined("INNER", ranges.head, "x", "y"))
    assert(
      Joins
        .explain(df)
        .toString
        .contains("keys with many rows are searched by range, point in interval"))
    df.collect()
    assert(Joins.explain(df).toString.contains("point in interval ("))
  }
}
