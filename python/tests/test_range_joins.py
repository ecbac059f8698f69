"""Range joins in SQL and with DataFrames, compared with stock Spark, DuckDB and brute force."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from pyspark.sql import functions as F

import pyspark_skewext as skewext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]

ON = {
    "point": "p.t >= i.s AND p.t < i.e",
    "closed": "p.t BETWEEN i.s AND i.e AND p.k <> i.k",
    "overlap": "p.t < i.e AND i.s < p.u",
    "band": "abs(p.t - i.s) <= 2",
    "moved": "p.t BETWEEN i.s - 1 AND i.s + 3",
}

MATCH = {
    "point": lambda p, i: p[1] >= i[1] and p[1] < i[2],
    "closed": lambda p, i: i[1] <= p[1] <= i[2] and p[3] != i[3],
    "overlap": lambda p, i: p[1] < i[2] and i[1] < p[2],
    "band": lambda p, i: abs(p[1] - i[1]) <= 2,
    "moved": lambda p, i: i[1] - 1 <= p[1] <= i[1] + 3,
}

COLUMNS = {"closed": (1, 2, 3), "overlap": (1, 2), "point": (1, 2), "band": (1,), "moved": (1,)}


def _rows(seed: int, count: int) -> list[Row]:
    """Ids, starts, ends (before the start sometimes) and small numbers, with nulls and ties."""
    rand = random.Random(seed)
    rows: list[Row] = []
    for n in range(count):
        start = rand.randrange(40)
        row = (n, start, start + rand.randrange(-2, 7), rand.randrange(3))
        rows.append(tuple(None if at and rand.random() < 0.08 else v for at, v in enumerate(row)))
    return rows


POINTS, INTERVALS = _rows(1, 70), _rows(2, 50)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    """Both tables, as views."""
    spark.createDataFrame(POINTS, "id INT, t INT, u INT, k INT").createOrReplaceTempView("p")
    spark.createDataFrame(INTERVALS, "id INT, s INT, e INT, k INT").createOrReplaceTempView("i")
    yield
    for name in ("p", "i"):
        spark.catalog.dropTempView(name)


def _pairs(form: str, how: str) -> list[Row]:
    """The ids of the join by brute force."""

    def matches(p: Row, i: Row) -> bool:
        # A comparison with a null is not true.
        known = all(p[at] is not None for at in _used(form, 0)) and all(
            i[at] is not None for at in _used(form, 1)
        )
        return known and MATCH[form](p, i)

    pairs = [(p, i) for p in POINTS for i in INTERVALS if matches(p, i)]
    left, right = {p[0] for p, _ in pairs}, {i[0] for _, i in pairs}
    if how in ("left semi", "left anti"):
        return [(p[0],) for p in POINTS if (p[0] in left) == (how == "left semi")]
    found: list[Row] = [(p[0], i[0]) for p, i in pairs]
    if how in ("left", "full"):
        found += [(p[0], None) for p in POINTS if p[0] not in left]
    if how in ("right", "full"):
        found += [(None, i[0]) for i in INTERVALS if i[0] not in right]
    return found


def _used(form: str, side: int) -> tuple[int, ...]:
    """The columns of a side that a condition reads."""
    points = {"closed": (1, 3), "overlap": (1, 2)}
    return points.get(form, (1,)) if side == 0 else COLUMNS[form]


def _sorted(rows: Any) -> list[Row]:
    return sorted((tuple(row) for row in rows), key=lambda row: [(v is None, v or 0) for v in row])


def _sql(form: str, how: str) -> str:
    ids = "p.id" if how.startswith("left ") else "p.id, i.id"
    return f"SELECT /*+ BROADCAST(i) */ {ids} FROM p {how} JOIN i ON {ON[form]}"


HOWS = ("inner", "left", "right", "full", "left semi", "left anti")


@pytest.mark.parametrize("form", ON)
@pytest.mark.usefixtures("tables")
def test_rows_are_those_of_brute_force(spark: SparkSession, form: str) -> None:
    for how in HOWS:
        df = spark.sql(_sql(form, how))
        assert "BroadcastRangeJoin" in str(skewext.explain(df)), (form, how)
        assert _sorted(df.collect()) == _sorted(_pairs(form, how)), (form, how)


@pytest.mark.usefixtures("tables")
def test_rows_are_those_of_stock_spark_and_duckdb(spark: SparkSession) -> None:
    with duckdb.connect() as duck:
        for name, rows, columns in (("p", POINTS, "t, u, k"), ("i", INTERVALS, "s, e, k")):
            types = ", ".join(f"{c} INT" for c in f"id, {columns}".split(", "))
            duck.execute(f"CREATE TABLE {name} ({types})")
            duck.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", [list(r) for r in rows])
        for form, how in zip(ON, HOWS):
            query = _sql(form, how)
            ours = _sorted(spark.sql(query).collect())
            duck_query = query.replace("left semi", "semi").replace("left anti", "anti")
            assert ours == _sorted(duck.execute(duck_query).fetchall()), query
            spark.conf.set("spark.skewext.rangeJoin.enabled", "false")
            try:
                df = spark.sql(query)
                assert "BroadcastNestedLoopJoin" in str(skewext.explain(df))
                assert ours == _sorted(df.collect()), query
            finally:
                spark.conf.unset("spark.skewext.rangeJoin.enabled")


@pytest.mark.usefixtures("tables")
def test_data_frames(spark: SparkSession) -> None:
    def joined(how: str) -> DataFrame:
        p, i = spark.table("p").alias("p"), spark.table("i").alias("i")
        return p.join(F.broadcast(i), (F.col("t") >= F.col("s")) & (F.col("t") < F.col("e")), how)

    df = joined("left").select("p.id", "i.id")
    assert "point in interval" in str(skewext.explain(df))
    assert _sorted(df.collect()) == _sorted(_pairs("point", "left"))
    semi = joined("left_semi").select("id")
    assert _sorted(semi.collect()) == _sorted(_pairs("point", "left semi"))


@pytest.mark.usefixtures("tables")
def test_equal_keys_beside_the_range(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        query = "SELECT p.id, i.id FROM p JOIN i ON p.k = i.k AND " + ON["point"]
        df = spark.sql(query)
        assert "keys with many rows are searched by range" in str(skewext.explain(df))
        keys = ({row[0]: row[3] for row in POINTS}, {row[0]: row[3] for row in INTERVALS})
        expected = [
            (p, i)
            for p, i in _pairs("point", "inner")
            if keys[0][p] is not None and keys[0][p] == keys[1][i]
        ]
        assert _sorted(df.collect()) == _sorted(expected)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
