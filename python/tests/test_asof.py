"""As-of joins and latest rows: answers beside a definition in Python, DuckDB, pandas; errors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any, Callable

import duckdb
import numpy
import pytest
from multisets import assert_same_rows
from plans import plan_of
from pyspark.errors import AnalysisException, PySparkException, PySparkTypeError, PySparkValueError
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from stock import setting, table_of

import pyspark_skewext as skewext
from pyspark_skewext import asof, asof_join, latest, multi_full_join, multi_join

#: Types of time: the value of a number, and a tolerance.
TIMES: dict[str, tuple[Callable[[int], Any], Any]] = {
    "int": (lambda n: n, numpy.int64(4)),
    "double": (lambda n: n / 4, 0.75),
    "date": (lambda n: date(1969, 12, 20) + timedelta(n), timedelta(3)),
    "timestamp": (lambda n: datetime(1969, 12, 31) + timedelta(hours=n), timedelta(hours=5)),
}
#: Directions, whether exact matches are allowed, and whether there is a tolerance.
MATCHES = list(product(("backward", "forward", "nearest"), (True, False), (True, False)))

Rows = list[tuple[Any, ...]]


REWRITES_ROW_NUMBERS = "spark.skewext.latest.rewrite.enabled"


def random_rows(random: Random, kind: str, keys: int, rows: int) -> Rows:
    """Keys, a time and a value: all with nulls, and several rows of a key at one time."""

    def some(value: Any) -> Any:
        return None if random.random() < 0.1 else value

    def row() -> tuple[Any, ...]:
        own = [some(random.randrange(3)) for _ in range(keys)]
        return (*own, some(TIMES[kind][0](random.randrange(40))), some(random.randrange(50)))

    return [row() for _ in range(rows)]


def match(row: Sequence[Any], versions: Rows, options: dict[str, Any]) -> tuple[Any, ...] | None:
    """Time and value of the version that matches a row of the spine, by definition."""
    (*key, at, _), within = row, options["tolerance"]
    found = [
        (then, value)
        for *own, then, value in versions
        if own == key
        and None not in (*key, at, then)
        and (options["direction"] != "backward" or then <= at)
        and (options["direction"] != "forward" or then >= at)
        and (options["allow_exact_matches"] or then != at)
        and (within is None or abs(then - at) <= within)
    ]
    if not found:
        return None
    closest = min((abs(then - at), then) for then, _ in found)[1]
    values = [value for then, value in found if then == closest]
    return closest, max(values, key=lambda value: -1 if value is None else value)


def options_of(kind: str, direction: str, exact: bool, is_limited: bool) -> dict[str, Any]:
    limit = TIMES[kind][1] if is_limited else None
    return {"direction": direction, "allow_exact_matches": exact, "tolerance": limit}


@pytest.mark.slow("date-left-1", "double-left-1", "int-left-1", "timestamp-left-1")
@pytest.mark.parametrize(("how", "keys"), [("left", 1), ("inner", 2)])
@pytest.mark.parametrize("kind", TIMES)
def test_random_tables(spark: SparkSession, kind: str, how: str, keys: int) -> None:
    random = Random(f"{kind} {how}")
    names = [f"k{n}" for n in range(keys)]
    spine = random_rows(random, kind, keys, 60)
    schema = " int, ".join(names) + " int"
    tables, expected = [], [list(row) for row in spine]
    for n, chosen in enumerate(MATCHES if how == "left" else random.sample(MATCHES, 4)):
        options = options_of(kind, *chosen)
        versions = random_rows(random, kind, keys, 120)
        table = table_of(spark, versions, f"{schema}, t{n} {kind}, v{n} int").repartition(3)
        tables.append(asof(table, time=f"t{n}", **options))
        for row, result in zip(spine, expected):
            result += match(row, versions, options) or (None, None)
    if how == "inner":
        expected = [row for row in expected if None not in row[keys + 2 :: 2]]
    labels = table_of(spark, spine, f"{schema}, at {kind}, id int")
    joined = asof_join(labels, *tables, on=names, time="at", how=how)
    assert joined.columns[: keys + 4] == [*names, "at", "id", "t0", "v0"]
    assert expected
    assert_same_rows(joined, map(tuple, expected))


def distinct_times(random: Random, rows: int) -> Rows:
    """Rows of (k, t, v) without nulls, each key at most once at a time."""
    pairs = random.sample(list(product(range(4), range(3 * rows))), rows)
    return [(k, t, v) for v, (k, t) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("direction", "exact", "compared"),
    [
        *(("backward", True, ">="), ("backward", False, ">")),
        *(("forward", True, "<="), ("forward", False, "<")),
    ],
)
def test_the_rows_of_duckdb(
    spark: SparkSession, direction: str, exact: bool, compared: str
) -> None:
    spine, versions = (distinct_times(Random(seed), 150) for seed in (1, 2))
    with duckdb.connect() as connection:
        for name, rows in (("s", spine), ("v", versions)):
            connection.execute(f"CREATE TABLE {name} (k INTEGER, t INTEGER, v INTEGER)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        expected = connection.execute(
            f"SELECT s.*, v.t, v.v FROM s ASOF LEFT JOIN v ON s.k = v.k AND s.t {compared} v.t"
        ).fetchall()
    left, right = (table_of(spark, rows, "k int, t int, v int") for rows in (spine, versions))
    table = asof(right, time="t", direction=direction, allow_exact_matches=exact)
    assert_same_rows(asof_join(left, table, on="k", time="t", suffixes=["", "_v"]), expected)


def test_the_rows_of_pandas(spark: SparkSession) -> None:
    pandas = pytest.importorskip("pandas", reason="compares with pandas")
    spine, versions = (distinct_times(Random(seed), 150) for seed in (3, 4))
    left, right = (
        pandas.DataFrame(rows, columns=columns).sort_values("t").convert_dtypes()
        for rows, columns in ((spine, ["k", "t", "a"]), (versions, ["k", "t", "b"]))
    )
    labels = table_of(spark, spine, "k int, t int, a int")
    tables = []
    for n, chosen in enumerate(MATCHES):
        options = options_of("int", *chosen)
        named = right.rename(columns={"b": f"b{n}"})
        left = pandas.merge_asof(left, named, on="t", by="k", **options)
        own = table_of(spark, versions, f"k int, t{n} int, b{n} int")
        tables.append(asof(own, time=f"t{n}", **options))
    joined = asof_join(labels, *tables, on="k", time="t")
    kept = [name for name in joined.columns if not name.startswith("t") or name == "t"]
    rows = left[kept].astype(object).where(left[kept].notna(), None)
    assert_same_rows(joined.select(kept), rows.itertuples(index=False, name=None))


def test_merge_asof_of_pandas_on_spark_is_rewritten(spark: SparkSession) -> None:
    needed = "pandas on Spark needs it"
    pandas = pytest.importorskip("pandas", reason=needed)
    pytest.importorskip("pyarrow", reason=needed)
    on_spark = pytest.importorskip("pyspark.pandas", reason="Spark needs other pandas")
    spine, versions = (
        pandas.DataFrame([row for row in distinct_times(Random(seed), 90) if None not in row])
        for seed in (5, 6)
    )
    left = spine.set_axis(["k", "t", "a"], axis=1).sort_values("t")
    right = versions.set_axis(["k", "t", "b"], axis=1).sort_values("t")
    # pandas on Spark refuses ANSI mode.
    with setting(spark, "spark.sql.ansi.enabled", "false"):
        joined = on_spark.merge_asof(
            on_spark.from_pandas(left), on_spark.from_pandas(right), on="t", by="k", tolerance=9
        ).to_spark()
    assert "AsOfJoin" in plan_of(joined)
    rows = pandas.merge_asof(left, right, on="t", by="k", tolerance=9)
    rows = rows[joined.columns].astype(object)
    expected = rows.where(rows.notna(), None).itertuples(index=False, name=None)
    assert_same_rows(joined, expected)


@pytest.mark.slow
def test_ties_do_not_depend_on_the_order_of_rows(spark: SparkSession) -> None:
    labels = table_of(spark, [(1, 5)], "k int, at int")
    rows = [(1, 5, None, "z"), (1, 5, 3, None), (1, 5, 3, "b"), (1, 5, 3, "a"), (1, 5, 2, "y")]
    orders: list[tuple[Any, Any]] = [
        (None, (3, "b")),
        ("w", (None, "z")),
        ([sf.asc("v"), sf.desc("w")], (None, "z")),
        ([sf.asc_nulls_last("v"), "w"], (2, "y")),
        ([sf.col("v"), sf.asc_nulls_last("w")], (3, "a")),
    ]
    for number, (ties, expected) in enumerate(orders):
        Random(number).shuffle(rows)
        versions = table_of(spark, rows, "k int, t int, v int, w string")
        versions = versions.repartition(1 + number)
        joined = asof_join(labels, asof(versions, time="t", ties=ties), on="k", time="at")
        assert_same_rows(joined, [(1, 5, 5, *expected)])
        # A table and its own versions have the same columns.
        itself = asof_join(
            versions, asof(versions, time="t", ties=ties), on="k", time="t", suffixes=["", "_of"]
        )
        assert_same_rows(itself.select("t_of", "v_of", "w_of").distinct(), [(5, *expected)])
        newest = latest(versions, "k", by="t", ties=ties)
        assert_same_rows(newest, [(1, 5, *expected)])


class OfPandas1(timedelta):
    """A duration that cannot be compared with a long one, like `Timedelta` of pandas 1."""

    def __gt__(self, other: timedelta) -> bool:
        if other.days > 106_751:
            raise OverflowError(other)
        return super().__gt__(other)


def test_forms_of_a_tolerance(spark: SparkSession) -> None:
    labels = spark.sql("SELECT 1 AS k, TIMESTAMP'2024-03-31 12:00:00' AS at, 10 AS n")
    forms: list[tuple[str, Any, bool]] = [
        *(("2024-03-29 12:00:00", given, True) for given in ("2 days", "48 hours", timedelta(2))),
        ("2024-03-29 12:00:00", numpy.timedelta64(48 * 3600 * 10**9, "ns"), True),
        ("2024-03-29 11:59:59", numpy.timedelta64(48 * 3600 * 10**9, "ns"), False),
        ("2024-03-30 00:00:00", OfPandas1(hours=36), True),
        ("2024-03-29 23:59:59", OfPandas1(hours=36), False),
        *(
            ("1900-01-01 00:00:00", given, True)
            for given in (timedelta.max, numpy.timedelta64(213_503_983, "D"))
        ),
        ("2024-03-29 11:59:59", "2 days", False),
        ("2024-02-29 12:00:00", "1 month", True),
        ("2024-02-28 12:00:00", "1 month", False),
    ]
    tables = [
        asof(spark.sql(f"SELECT 1 AS k, TIMESTAMP'{then}' AS t{n}"), time=f"t{n}", tolerance=given)
        for n, (then, given, _) in enumerate(forms)
    ]
    (row,) = asof_join(labels, *tables, on="k", time="at").collect()
    assert [each is not None for each in row[3:]] == [found for _, _, found in forms]
    numbers = [
        asof(spark.sql(f"SELECT 1 AS k, 8 AS t{n}"), time=f"t{n}", tolerance=given)
        for n, given in enumerate([2, 2.0, Decimal("2.0"), 1, 1.9, Decimal("1.9"), 0])
    ]
    (row,) = asof_join(labels, *numbers, on="k", time="n").collect()
    assert row[3:] == (8, 8, 8, None, None, None, None)


@pytest.mark.parametrize(
    "given", [Decimal("NaN"), Decimal("Infinity"), Decimal("1e50"), Decimal("1e-50"), 10**40]
)
def test_numbers_that_sql_does_not_have(spark: SparkSession, given: Decimal | int) -> None:
    labels = spark.sql("SELECT 1 AS k, 8 AS n")
    with pytest.raises(PySparkValueError, match="at most 38 digits"):
        asof_join(labels, asof(labels, time="n", tolerance=given), on="k", time="n")


def test_a_column_as_tolerance(spark: SparkSession) -> None:
    labels = spark.sql("SELECT 1 AS k, DATE'2024-03-31' AS at")
    versions = spark.sql("SELECT 1 AS k, DATE'2024-03-29' AS t")
    for days, found in ((2, 1), (1, 0)):
        table = asof(versions, time="t", tolerance=sf.expr(f"INTERVAL '{days}' DAY"))
        assert asof_join(labels, table, on="k", time="at", how="inner").count() == found
    longest = latest(versions, "k", by=sf.length(sf.col("t").cast("string")))
    assert longest.count() == 1


def test_keys_of_other_names_and_several_entities(spark: SparkSession) -> None:
    labels = spark.sql("SELECT 1 AS user, 7L AS item, DATE'2024-01-05' AS day, 'l' AS name")
    users = spark.sql("SELECT 1L AS uid, TIMESTAMP'2024-01-04 10:00:00' AS since, 'ann' AS name")
    items = spark.sql("SELECT 7 AS ITEM, 1 AS user, DATE'2024-01-05' AS since, 'tea' AS name")
    joined = asof_join(
        labels,
        asof(users, time="SINCE", on="UID"),
        asof(items, time="since", on={"item": "item"}),
        asof(items, time="since", on={"user": "user", "item": "item"}, allow_exact_matches=False),
        on="USER",
        time="day",
        suffixes=[None, "_user", "_item", "_both"],
    )
    expected = "since_user name_user user_item since_item name_item since_both name_both"
    assert joined.columns == ["user", "item", "day", "name", *expected.split()]
    (row,) = joined.collect()
    assert row.since_user == datetime(2024, 1, 4, 10) and row.name == "l"
    assert row[5:] == ("ann", 1, date(2024, 1, 5), "tea", None, None)


@pytest.mark.slow
def test_latest_is_the_first_row_of_a_window(spark: SparkSession) -> None:
    rows = random_rows(Random(5), "timestamp", 2, 400)
    df = table_of(spark, rows, "k0 int, k1 int, t timestamp, v int").repartition(4)
    newest = [sf.desc("t"), sf.desc("v")]
    oldest = [sf.asc_nulls_last("t"), sf.asc("v")]
    for by, order in (("t", newest), (["t", "v"], newest), (newest, newest), (oldest, oldest)):
        for keys in (["k0"], ["k0", "k1"]):
            window = Window.partitionBy(*keys).orderBy(*order, sf.desc("k1"))
            place = sf.row_number().over(window)
            with setting(spark, REWRITES_ROW_NUMBERS, "false"):
                first = df.withColumn("place", place).where("place = 1").collect()
            # Other columns decide from left to right, and k1 is to the left of v.
            given = latest(df, keys, by=by, ties=None if len(keys) == 2 else ["v", "k1"])
            assert_same_rows(given, [row[:-1] for row in first])


def test_row_numbers_are_rewritten(spark: SparkSession) -> None:
    rows = random_rows(Random(7), "timestamp", 1, 300)
    df = table_of(spark, rows, "k int, t timestamp, v int").repartition(4)
    df.createOrReplaceTempView("events")
    sql = """
        SELECT k, t, v FROM (
            SELECT *, row_number() OVER (PARTITION BY k ORDER BY t DESC, v) AS place FROM events)
        WHERE place = 1 AND v > 0"""
    newest = spark.sql(sql)
    assert "LatestRows" in plan_of(newest) and "Window " not in plan_of(newest)
    assert "row_number() = 1 of a window became one operator" in str(skewext.explain(newest))
    with setting(spark, REWRITES_ROW_NUMBERS, "false"):
        stock = spark.sql(sql)
        assert "LatestRows" not in plan_of(stock)
        expected = stock.collect()
    assert_same_rows(newest, expected)
    all_first = spark.sql(sql.replace("row_number", "rank"))
    assert "LatestRows" not in plan_of(all_first)
    assert "rank() keeps all rows that are equal" in str(skewext.explain(all_first))


@pytest.mark.slow
def test_latest_as_an_input_of_a_join(spark: SparkSession) -> None:
    rows = random_rows(Random(6), "int", 1, 200)
    base = table_of(spark, [(1, "a"), (2, "b"), (9, "c"), (None, "d")], "k int, name string")
    df = table_of(spark, rows, "id int, t int, v int").repartition(4)
    place = sf.row_number().over(Window.partitionBy("id").orderBy(sf.desc("t"), sf.desc("v")))
    first = df.withColumn("place", place).where("place = 1").drop("place")
    for how in ("full", "left", "inner"):
        joined = multi_join(base, (latest(df, by="t"), "id"), on="k", how=how)
        assert plan_of(joined).count("Exchange hashpartitioning") == 2
        with setting(spark, REWRITES_ROW_NUMBERS, "false"):
            assert_same_rows(joined, multi_join(base, (first, "id"), on="k", how=how))
    named = df.withColumnRenamed("id", "k")
    assert skewext.skew_report((latest(df, by="t"), "id"), "k", base).df.rows == first.count()
    both = multi_full_join(latest(named, by="t"), base, latest(named, by=["v", "t"]), on="k")
    assert both.columns == ["k", "t", "v", "name", "t", "v"]
    assert both.where("k = 1").count() == 1


def test_plan(spark: SparkSession) -> None:
    labels = spark.range(10).selectExpr("id % 3 AS k", "id AS at")
    tables = [
        asof(spark.range(20).selectExpr("id % 3 AS k", f"id AS t{n}"), time=f"t{n}")
        for n in range(3)
    ]
    plan = plan_of(asof_join(labels, *tables, on="k", time="at"))
    assert plan.count("Exchange hashpartitioning") == 4
    assert plan.count("AsOfJoin") == 1 and "Window" not in plan


Call = Callable[[DataFrame, DataFrame], Any]


def join_of(spine: Any, *tables: Any, **options: Any) -> DataFrame:
    return asof_join(spine, *tables, **{"on": "k", "time": "at", **options})


WRONG: list[tuple[type[PySparkException], str, Call]] = [
    (PySparkTypeError, "df must be a DataFrame, not str", lambda _, v: asof("v", time="t")),
    (PySparkTypeError, "time must be the name of", lambda _, v: asof(v, time=["t"])),
    (
        AnalysisException,
        "time has the column 'tt', which input 2 (counting from 0) does not have; its columns are "
        "'k', 't', 'v'",
        lambda s, v: join_of(s, asof(v, time="t"), asof(v, time="tt")),
    ),
    *(
        (
            AnalysisException,
            "on has the column 'x', which input 1 (counting from 0) does not have",
            lambda s, v, on=on: join_of(s, asof(v, time="t", on=on)),
        )
        for on in ("x", {"k": "x"})
    ),
    *(
        (
            PySparkValueError,
            f"tolerance must be an interval like '7 days' or '1 month', not {words!r}.",
            lambda _, v, words=words: asof(v, time="t", tolerance=words),
        )
        for words in ("banana", "5", "")
    ),
    (PySparkValueError, "on must not be empty", lambda _, v: asof(v, time="t", on={})),
    (PySparkValueError, "'nearest', not 'up'", lambda _, v: asof(v, time="t", direction="up")),
    (PySparkTypeError, "a Column, not list", lambda _, v: asof(v, time="t", tolerance=[1])),
    (PySparkTypeError, "a Column, not bool", lambda _, v: asof(v, time="t", tolerance=True)),
    *(
        (PySparkValueError, "a duration in", lambda _, v, t=t: asof(v, time="t", tolerance=t))
        for t in (numpy.timedelta64(1, "M"), numpy.timedelta64("NaT"), numpy.timedelta64(7))
    ),
    (PySparkTypeError, "must be True or", lambda _, v: asof(v, time="t", allow_exact_matches=1)),
    (PySparkValueError, "ties must not be empty", lambda _, v: asof(v, time="t", ties=[])),
    (PySparkTypeError, "ties must be the", lambda _, v: asof(v, time="t", ties=[["v"]])),
    (
        AnalysisException,
        "ties has the column 'x', which input 1 (counting from 0) does not have",
        lambda s, v: join_of(s, asof(v, time="t", ties="x")),
    ),
    (
        AnalysisException,
        "A Column is not computed from the columns of input 1 (counting from 0): ",
        lambda s, v: join_of(s, asof(v, time="t", ties=sf.desc("x"))),
    ),
    (AnalysisException, "it stands for several.", lambda _, v: latest(v, "k", by=sf.col("*"))),
    (
        AnalysisException,
        "is not computed from the columns of one row",
        lambda _, v: latest(v, "k", by=sf.row_number().over(Window.orderBy("k"))),
    ),
    (PySparkTypeError, "spine must be a DataFrame", lambda s, v: join_of((s, "k"))),
    (PySparkValueError, "at least one asof(df, time=...)", lambda s, _: join_of(s)),
    (
        PySparkTypeError,
        "Input 2 (counting from 0) must be made by asof(df, time=...), not DataFrame",
        lambda s, v: join_of(s, asof(v, time="t"), v),
    ),
    (
        AnalysisException,
        "The spine has no column 'id'; its columns are 'k', 'at', 's'; on has the names of",
        lambda s, v: join_of(s, asof(v, time="t"), on="id"),
    ),
    (
        AnalysisException,
        "The spine has no column 'day'; its columns are 'k', 'at', 's'.",
        lambda s, v: join_of(s, asof(v, time="t"), time="day"),
    ),
    (
        AnalysisException,
        "Input 1 (counting from 0) has no column 's'; its columns are 'k', 't', 'v'; on has the",
        lambda s, v: join_of(s, asof(v, time="t"), on="s"),
    ),
    (
        AnalysisException,
        "Input 1 (counting from 0) has 2 key columns (k, v), the spine has 1 (k)",
        lambda s, v: join_of(s, asof(v, time="t", on=["k", "v"])),
    ),
    (
        PySparkValueError,
        "how must be 'left' or 'inner', not 'full'",
        lambda s, v: join_of(s, asof(v, time="t"), how="full"),
    ),
    (AnalysisException, "suffixes=", lambda s, v: join_of(s, *[asof(v, time="t")] * 2)),
    (
        AnalysisException,
        "suffixes must have 2 entries, one for each input, not 1.",
        lambda s, v: join_of(s, asof(v, time="t"), suffixes=[""]),
    ),
    (AnalysisException, "negative", lambda s, v: join_of(s, asof(v, time="t", tolerance=-1))),
    (AnalysisException, "negative", lambda s, v: join_of(s, asof(v, time="t", tolerance="-1 day"))),
    (
        AnalysisException,
        "does not fit times of type",
        lambda s, v: join_of(s, asof(v, time="t", tolerance="1 day")),
    ),
    (
        AnalysisException,
        "of type INT, cannot be compared with the time 'v' of input 1",
        lambda s, v: join_of(s, asof(v, time="v")),
    ),
    (
        AnalysisException,
        "have no differences",
        lambda s, v: join_of(s, asof(v, time="v", tolerance=1), time="s"),
    ),
    (
        AnalysisException,
        "have no differences",
        lambda s, v: join_of(s, asof(v, time="v", direction="nearest"), time="s"),
    ),
    (AnalysisException, "cannot be compared", lambda s, v: join_of(s, asof(v, time="m"))),
    (
        AnalysisException,
        "cannot be ordered by column 'm'",
        lambda s, v: join_of(s, asof(v, time="t")).collect(),
    ),
    (
        AnalysisException,
        "cannot be ordered by column 'm'",
        lambda _, v: join_of(v, asof(v, time="t"), time="t", suffixes=["", "_of"]),
    ),
    (
        AnalysisException,
        "The time 't' of the spine, of type INT, cannot be compared with the time 'm'",
        lambda _, v: join_of(v, asof(v, time="m"), time="t", suffixes=["", "_of"]),
    ),
    (PySparkTypeError, "by must be the name of a", lambda _, v: latest(v, "k", by=3)),
    (
        AnalysisException,
        "by has the column 'x', which input 1 (counting from 0) does not have",
        lambda s, v: multi_full_join(s, latest(v, by="x"), on="k"),
    ),
    (
        AnalysisException,
        "by has the column 'x', which df does not have",
        lambda _, v: latest(v, "k", by="x"),
    ),
    (AnalysisException, "on has the column 'x'", lambda _, v: latest(v, "x", by="t")),
    (AnalysisException, "cannot be ordered by column 'm'", lambda _, v: latest(v, "k", by="m")),
    (
        AnalysisException,
        "on has the column 'k', which input 1 (counting from 0) has 2 times",
        lambda s, v: multi_full_join(s, latest(v.select("k", "*"), by="t"), on="k"),
    ),
    (PySparkTypeError, "not Latest", lambda s, v: skewext.skew_join(s, latest(v, by="t"), "k")),
]


@pytest.mark.parametrize(("kind", "words", "call"), WRONG)
def test_bad_input(
    spark: SparkSession, kind: type[PySparkException], words: str, call: Call
) -> None:
    spine = spark.sql("SELECT 1 AS k, 1 AS at, 'x' AS s")
    versions = spark.sql("SELECT 1 AS k, 1 AS t, 'x' AS v")
    if "'m'" in words or "compared" in words:
        versions = versions.withColumn("m", sf.create_map("v", "v"))
    with pytest.raises(kind) as caught:
        call(spine, versions)
    message = str(caught.value).partition("\n\nJVM stacktrace:")[0]
    assert words in message
    assert "\n" not in message.strip() and "Project [" not in message


def test_descriptions_with_columns_can_be_compared(spark: SparkSession) -> None:
    df = spark.range(3)
    first, second = (asof(df, time="id", ties=sf.asc("id")) for _ in range(2))
    assert first != second and latest(df, by=sf.asc("id")) != latest(df, by=sf.asc("id"))


def test_streams(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    batch = spark.range(1).withColumn("at", sf.current_timestamp())
    for call in (
        lambda: asof(stream, time="timestamp"),
        lambda: asof_join(stream, asof(batch, time="at"), on="value", time="timestamp"),
        lambda: latest(stream, "value", by="timestamp"),
    ):
        with pytest.raises(AnalysisException, match="is a streaming DataFrame"):
            call()
