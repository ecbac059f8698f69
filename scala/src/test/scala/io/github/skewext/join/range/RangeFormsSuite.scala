package io.github.skewext.join.range

import org.apache.spark.sql.catalyst.plans.logical.Join

/** Which conditions have a range, and of which form. */
class RangeFormsSuite extends RangeJoinTest {

  /** The form of the range of a condition; an empty text for one side of it, null for nothing. */
  private def form(on: String): String = {
    val join = spark
      .sql(s"SELECT * FROM a JOIN b ON $on")
      .queryExecution
      .optimizedPlan
      .collectFirst { case join: Join => join }
      .get
    val condition = join.condition.get
    RangeMatch
      .of(condition, join.left, join.right)
      .map(_.form)
      .getOrElse(if (RangeMatch.isOneSided(condition, join.left, join.right)) "" else null)
  }

  test("points in intervals") {
    for (on <- Seq(
        "a.int_s >= b.int_s AND a.int_s < b.int_e",
        "a.int_s BETWEEN b.int_s AND b.int_e",
        "b.int_s < a.int_s AND b.int_e >= a.int_s AND a.k <> b.k",
        "NOT (a.ts_s < b.ts_s OR a.ts_s >= b.ts_e)",
        "a.int_s >= b.long_s AND a.int_s < b.long_e",
        "a.k + b.k > 3 AND b.text_s BETWEEN a.text_s AND a.text_e",
        "a.int_s >= b.int_s AND (b.int_e IS NULL OR a.int_s < b.int_e)",
        "a.short_s >= b.short_s AND (a.short_s < b.short_e OR b.short_e IS NULL)",
        "a.int_s >= b.int_s AND (b.int_e IS NULL OR a.int_s < b.int_e OR a.int_s IS NULL)",
        "(b.ts_s IS NULL OR a.ts_s >= b.ts_s) AND NOT (b.ts_e IS NOT NULL AND a.ts_s >= b.ts_e)"))
      assert(form(on) === "point in interval", on)
  }

  test("intervals that overlap") {
    for (on <- Seq(
        "a.date_s < b.date_e AND b.date_s < a.date_e",
        "a.date_e >= b.date_s AND b.date_e >= a.date_s",
        "a.date_s < b.date_e AND (a.date_e IS NULL OR b.date_s < a.date_e)"))
      assert(form(on) === "overlap of intervals", on)
  }

  test("bands") {
    for (on <- Seq(
        "a.ts_s BETWEEN b.ts_s - INTERVAL 5 SECONDS AND b.ts_s + INTERVAL 5 SECONDS",
        "abs(a.int_s - b.int_s) <= 3",
        "3 > abs(a.double_s - b.double_s)",
        "abs(a.dec_s - b.dec_s) <= 1.5",
        "abs(datediff(a.date_s, b.date_s)) < 4",
        "a.long_s - b.long_s >= -2 AND a.long_s - b.long_s < 7",
        "b.short_s - a.short_s BETWEEN CAST(0 AS SMALLINT) AND CAST(3 AS SMALLINT)"))
      assert(form(on) === "band", on)
  }

  test("the range of one column is chosen") {
    val on = "a.k < b.k AND a.int_s >= b.int_s AND a.int_s < b.int_e AND a.id > b.id"
    assert(form(on) === "point in interval")
    assert(form("a.id > b.k AND abs(a.int_s - b.int_s) <= 3 AND a.k < b.id") === "band")
  }

  test("comparisons in one direction are no range") {
    for (on <- Seq(
        "a.int_s < b.int_s",
        "a.int_s < b.int_s AND a.int_e <= b.int_e",
        "(b.int_e IS NULL OR a.int_s < b.int_e) AND (a.int_s >= b.int_s OR a.k = b.id)"))
      assert(form(on) === "", on)
  }

  test("conditions without comparisons of a side with the other one") {
    for (on <- Seq(
        "a.int_s <> b.int_s",
        "a.int_s + b.int_s > 3 AND a.int_s + b.int_s < 5",
        "(b.k IS NULL OR a.int_s < b.int_e) AND (coalesce(a.int_s, 3) > b.int_s OR a.int_s IS NULL)",
        "abs(a.wide_s - b.wide_s) <= 1",
        "abs(a.int_s - b.int_s) <= a.k"))
      assert(form(on) === null, on)
  }
}
