"""Tables of versions, and ways to find the version that was valid at the time of a row.

The first table is the spine. Each table has the same number of rows, and no key has two rows at one
time. `by_pairs` is the shape of Feast's query: it joins each row with all earlier versions, and a
window keeps the newest. `by_union` sorts a union of all tables once, and a window fills versions
down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from harness.case import FILES, Point
from pyspark_skewext import asof, asof_join, latest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_OF_A_KEY = {
    "versions": 10,
    "versions100": 100,
    "versions1000": 1000,
    "versions2000": 2000,
    "hotversions": 10,
    "wideversions": 10,
}
"""Kinds of tables. In `hotversions` one key has every second row. In `wideversions` each table of
versions has `PAYLOAD` more columns. In `versions2000` the spine has `SPARSE` times fewer rows."""

PAYLOAD = 120
SPARSE = 500

KEY = "device_id"
_STEP = 1_000_000_000
"""Microseconds from one row of a key to the next, on average."""


def table(spark: SparkSession, kind: str, rows: int, number: int) -> DataFrame:
    """One of the tables, before its rows are shuffled."""
    fewer = SPARSE if kind == "versions2000" and number == 0 else 1
    rows, copies, row = rows // fewer, ROWS_OF_A_KEY[kind] // fewer, F.col("id")
    key, place, step = F.expr(f"id div {copies}"), row % copies, F.lit(fewer * _STEP)
    if kind == "hotversions":
        is_hot = row % 2 == 0
        key = F.when(is_hot, F.lit(-7)).otherwise(key)
        place = F.when(is_hot, F.expr("id div 2")).otherwise(place)
        step = F.when(is_hot, F.lit(max(1, 2 * copies * _STEP // rows))).otherwise(step)
    at = place * step + F.pmod(F.xxhash64("id", F.lit(number)), step)
    payload = PAYLOAD if kind == "wideversions" and number > 0 else 0
    return spark.range(0, rows, 1, FILES).select(
        F.xxhash64(key).alias(KEY),
        F.timestamp_micros(at).alias(f"t{number}_at"),
        row.alias(f"t{number}_id"),
        F.pmod(F.xxhash64("id", F.lit(10 + number)), F.lit(1000)).alias(f"t{number}_a"),
        F.concat(F.lit("v"), (row % 5000).cast("string")).alias(f"t{number}_s"),
        *(
            F.pmod(F.xxhash64("id", F.lit(1000 * number + j)), F.lit(1000)).alias(f"t{number}_p{j}")
            for j in range(payload)
        ),
    )


def by_asof_join(tables: Sequence[DataFrame], _: Sequence[str], __: Point) -> DataFrame:
    """Ours."""
    versions = [asof(each, time=f"t{n}_at") for n, each in enumerate(tables) if n > 0]
    return asof_join(tables[0], *versions, on=KEY, time="t0_at")


def by_pairs(tables: Sequence[DataFrame], _: Sequence[str], __: Point) -> DataFrame:
    """A join of pairs, a window and a join back for each table."""
    joined = spine = tables[0]
    for n, versions in enumerate(tables[1:], 1):
        then = f"t{n}_at"
        pairs = spine.select("t0_id", KEY, "t0_at").join(versions, KEY)
        newest = Window.partitionBy("t0_id").orderBy(F.desc(then))
        place = F.row_number().over(newest).alias("place")
        found = pairs.where(F.col(then) <= F.col("t0_at")).select("*", place).where("place = 1")
        joined = joined.join(found.drop("place", KEY, "t0_at"), "t0_id", "left")
    return joined


def by_union(tables: Sequence[DataFrame], _: Sequence[str], __: Point) -> DataFrame:
    """A union of all tables, sorted by key and time, the spine after versions of the same time."""
    union = None
    for n, each in enumerate(tables):
        values = F.struct(*(name for name in each.columns if name != KEY)).alias(f"s{n}")
        own = each.select(KEY, F.col(f"t{n}_at").alias("at"), F.lit(n == 0).alias("last"), values)
        union = own if union is None else union.unionByName(own, allowMissingColumns=True)
    assert union is not None
    until_now = (
        Window.partitionBy(KEY).orderBy("at", "last").rowsBetween(Window.unboundedPreceding, 0)
    )
    filled = (
        F.last(f"s{n}", ignorenulls=True).over(until_now).alias(f"s{n}")
        for n in range(1, len(tables))
    )
    rows = union.select(KEY, "s0", *filled).where("s0 is not null")
    return rows.select(KEY, *(f"s{n}.*" for n in range(len(tables))))


def by_asof_sql(tables: Sequence[DataFrame], _: Sequence[str], __: Point) -> DataFrame:
    """The `ASOF JOIN` that Spark's SQL has from 4.3 on."""
    for n, each in enumerate(tables):
        each.createOrReplaceTempView(f"t{n}")
    joins = (
        f" LEFT ASOF JOIN t{n} MATCH_CONDITION (t0_at >= t{n}_at) USING ({KEY})"
        for n in range(1, len(tables))
    )
    return tables[0].sparkSession.sql(f"SELECT * FROM t0{''.join(joins)}")


def by_merge_asof(tables: Sequence[DataFrame], _: Sequence[str], __: Point) -> DataFrame:
    """The node that pandas on Spark's `merge_asof` makes of its arguments."""
    spine, versions = tables
    merged = spine._joinAsOf(
        versions,
        "t0_at",
        "t1_at",
        on=KEY,
        how="left",
        tolerance=None,
        allowExactMatches=True,
        direction="backward",
    )
    return merged.drop(versions[KEY])


def duckdb_query(tables: Sequence[str], _: Sequence[str]) -> str:
    """DuckDB's as-of joins."""
    joined, *others = tables
    joins = (
        f" ASOF LEFT JOIN {each} ON t0.{KEY} = t{n}.{KEY} AND t0_at >= t{n}_at"
        for n, each in enumerate(others, 1)
    )
    columns = ", ".join(f"t{n}.* EXCLUDE ({KEY})" for n in range(1, len(tables)))
    return f"SELECT t0.*, {columns} FROM {joined}{''.join(joins)}"


def by_latest(tables: Sequence[DataFrame], _: Sequence[str], __: Point) -> DataFrame:
    """Ours."""
    return latest(tables[0], KEY, by="t0_at")


def by_row_number(tables: Sequence[DataFrame], _: Sequence[str], __: Point) -> DataFrame:
    """The first row of a window."""
    newest = Window.partitionBy(KEY).orderBy(F.desc("t0_at"))
    place = F.row_number().over(newest).alias("place")
    return tables[0].select("*", place).where("place = 1").drop("place")


def by_max_by(tables: Sequence[DataFrame], _: Sequence[str], __: Point) -> DataFrame:
    """An aggregate of whole rows."""
    row = F.struct(*(name for name in tables[0].columns if name != KEY))
    return tables[0].groupBy(KEY).agg(F.max_by(row, "t0_at").alias("row")).select(KEY, "row.*")
