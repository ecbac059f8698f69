"""Joins with OR, against DuckDB and against Spark without the extension."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pytest
from amount import TEST_ALL
from multisets import assert_same_rows
from plans import node_names
from pyspark.sql import SparkSession
from stock import setting, table_of

from pyspark_skewext import explain

Row = tuple[Any, ...]

PAIRS = {"BroadcastNestedLoopJoin", "CartesianProduct"}

QUERIES = {
    "inner": "SELECT a.*, b.* FROM a JOIN b ON {on}",
    "left": "SELECT a.*, b.* FROM a LEFT JOIN b ON {on}",
    "right": "SELECT a.*, b.* FROM a RIGHT JOIN b ON {on}",
    "full": "SELECT a.*, b.* FROM a FULL JOIN b ON {on}",
    "semi": "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE {on})",
    "anti": "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {on})",
    "existence": "SELECT * FROM a WHERE n > 7 OR EXISTS (SELECT 1 FROM b WHERE {on})",
}

CONDITIONS = [
    "a.email = b.email OR a.phone = b.phone",
    "(a.email = b.email OR a.phone = b.phone) AND a.n < b.n",
    "a.email = b.email AND a.n < b.n OR a.phone = b.phone OR a.n = b.phone",
    "a.phone IN (b.phone, b.n)",
]

PARTS = ["a.email = b.email", "a.phone = b.phone", "a.n = b.n", "a.phone = b.n", "a.n = b.phone"]

OTHERS = ["a.n < b.n", "a.n <> b.phone", "b.email IS NOT NULL", "a.n + b.n < 14"]


@pytest.fixture(autouse=True)
def also_small(spark: SparkSession) -> Iterator[None]:
    """Tables of any size are joined on equal keys."""
    with setting(spark, "spark.skewext.orJoin.minPairs", 0):
        yield


def rows_of(source: random.Random, number: int) -> list[Row]:
    """Rows with nulls, and some of them twice."""
    rows: list[Row] = [
        (
            source.choice([None, *(f"x{n}" for n in range(9))]),
            source.choice([None, *range(9)]),
            source.randrange(12),
        )
        for _ in range(number)
    ]
    return rows + rows[: number // 4]


def by_duckdb(tables: Mapping[str, Sequence[Row]], query: str) -> list[Row]:
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.execute(f"CREATE TABLE {name} (email VARCHAR, phone INT, n INT)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        return connection.execute(query).fetchall()


def check(spark: SparkSession, tables: Mapping[str, Sequence[Row]], query: str) -> None:
    for name, rows in tables.items():
        table_of(spark, rows, "email string, phone int, n int").createOrReplaceTempView(name)
    # A sum in the condition may fail in ANSI mode, and keeps some joins Spark's.
    with setting(spark, "spark.sql.ansi.enabled", "false"):
        joined = spark.sql(query)
        assert not PAIRS & set(node_names(joined)), query
        found = joined.collect()
    assert_same_rows(found, by_duckdb(tables, query))
    for name, value in (("spark.skewext.enabled", "false"), ("spark.sql.ansi.enabled", "true")):
        with setting(spark, name, value):
            assert_same_rows(found, spark.sql(query).collect())


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_rows_are_duckdbs(spark: SparkSession, query: str) -> None:
    source = random.Random(query)
    for on in CONDITIONS if TEST_ALL else source.sample(CONDITIONS, 2):
        check(spark, {"a": rows_of(source, 40), "b": rows_of(source, 30)}, query.format(on=on))


@pytest.mark.parametrize("seed", range(40 if TEST_ALL else 4))
def test_random_conditions(spark: SparkSession, seed: int) -> None:
    source = random.Random(seed)
    parts = [
        " AND ".join([part, *source.sample(OTHERS, source.randrange(2))])
        for part in source.sample(PARTS, source.randint(2, 4))
    ]
    on = f"({' OR '.join(parts)})"
    if source.randrange(2):
        on += f" AND {source.choice(OTHERS)}"
    query = source.choice(list(QUERIES.values())).format(on=on)
    with setting(spark, "spark.sql.autoBroadcastJoinThreshold", source.choice(["-1", "10MB"])):
        check(spark, {"a": rows_of(source, 30), "b": rows_of(source, 30)}, query)


def test_published_cures_return_other_rows(spark: SparkSession) -> None:
    tables: dict[str, list[Row]] = {
        "a": [("x", 1, 0), ("x", 1, 0)],
        "b": [("x", 1, 5), (None, 1, 5)],
    }
    on = "a.email = b.email OR a.phone = b.phone"
    columns = "SELECT a.email, b.n FROM a JOIN b ON "
    check(spark, tables, columns + on)
    rows = spark.sql(columns + on).count()
    one, other = (columns + part for part in on.split(" OR "))
    assert rows == 4
    assert spark.sql(f"{one} UNION {other}").count() == 1
    assert spark.sql(f"{one} UNION ALL {other}").count() == 6
    assert spark.sql(f"{one} UNION ALL {other} AND a.email <> b.email").count() == 2


def test_explain_names_the_parts(spark: SparkSession) -> None:
    tables = {"a": [("x", 1, 0)], "b": [("x", 2, 0)]}
    query = QUERIES["anti"].format(on=CONDITIONS[0])
    check(spark, tables, query)
    origin = explain(spark.sql(query)).joins[0].origin
    assert origin.status == "rewritten"
    assert "a join with OR of 2 parts (email = email; phone = phone)" in origin.text
    with setting(spark, "spark.skewext.orJoin.enabled", "false"):
        origin = explain(spark.sql(query)).joins[0].origin
        assert origin.status == "not rewritten"
        assert origin.text == "spark.skewext.orJoin.enabled is false"
