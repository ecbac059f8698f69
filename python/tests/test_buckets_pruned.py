"""Random conditions on bucketed tables: the answer is Spark's and DuckDB's, of fewer files."""

from __future__ import annotations

import datetime
import itertools
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from stock import INTERPRETED, setting

from pyspark_skewext import explain

EXAMPLES = 2 * int(os.environ.get("SKEWEXT_EXAMPLES", "20"))
BUCKETS = 16


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its type in Spark and DuckDB, values and how SQL says them."""

    name: str
    kind: str
    values: tuple[Any, ...]
    literals: tuple[str, ...]


INT = Column("i", "int", (None, 0, -1, 7, 2**31 - 1), ("0", "-1", "7", "2147483647", "2147483648"))
TEXT = Column("s", "string", (None, "", "a", "ä", "a "), ("''", "'a'", "'ä'", "'a '", "'A'"))
DECIMAL = Column(
    "d",
    "decimal(9,2)",
    (None, Decimal("0.00"), Decimal("1.50"), Decimal("-2.25")),
    ("0", "1.5", "1.500", "-2.25", "2.255"),
)
DOUBLE = Column(
    "x",
    "double",
    (None, 0.0, -0.0, float("nan"), 1.5),
    ("0.0", "1.5", "CAST('NaN' AS DOUBLE)", "CAST('-0.0' AS DOUBLE)"),
)
DATE = Column(
    "t",
    "date",
    (None, datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)),
    ("DATE '1969-12-31'", "DATE '2024-02-29'", "DATE '2024-03-01'"),
)
FLAG = Column("f", "boolean", (None, True, False), ("true", "false"))
TABLES = {
    "pruned_is": (INT, TEXT),
    "pruned_td": (DATE, DECIMAL),
    "pruned_xif": (DOUBLE, INT, FLAG),
}


@pytest.fixture(scope="module")
def duck(spark: SparkSession) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables in Spark, bucketed, and the same rows in DuckDB."""
    with duckdb.connect() as connection:
        for name, columns in TABLES.items():
            rows = list(itertools.product(*(column.values for column in columns)))
            schema = ", ".join(f"{column.name} {column.kind}" for column in columns)
            numbered = [(*row, n) for n, row in enumerate(rows)]
            spark.sql(f"DROP TABLE IF EXISTS {name}")
            (
                spark.createDataFrame(numbered, f"{schema}, v int")
                .coalesce(1)
                .write.bucketBy(BUCKETS, *(column.name for column in columns))
                .saveAsTable(name)
            )
            connection.execute(f"CREATE TABLE {name} ({schema}, v int)")
            marks = ", ".join("?" * (len(columns) + 1))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", numbered)
        yield connection
        for name in TABLES:
            spark.sql(f"DROP TABLE {name}")


def fixing(column: Column) -> st.SearchStrategy[str]:
    """Conditions that leave a column some values."""
    literal = st.sampled_from(column.literals)
    listed = st.lists(st.one_of(literal, st.just("NULL")), min_size=1, max_size=4)
    forms = [
        literal.map(lambda v: f"{column.name} = {v}"),
        literal.map(lambda v: f"{v} = {column.name}"),
        st.one_of(literal, st.just("NULL")).map(
            lambda v: f"{column.name} IS NOT DISTINCT FROM {v}"
        ),
        listed.map(lambda vs: f"{column.name} IN ({', '.join(vs)})"),
        st.just(f"{column.name} IS NULL"),
    ]
    if column is FLAG:
        forms.append(st.sampled_from(["f", "NOT f"]))
    return st.one_of(forms)


def opening(column: Column) -> st.SearchStrategy[str]:
    """Conditions that no bucket can be told from."""
    literal = st.sampled_from(column.literals)
    return st.one_of(
        literal.map(lambda v: f"{column.name} > {v}"),
        literal.map(lambda v: f"{column.name} <> {v}"),
        st.just(f"{column.name} IS NOT NULL"),
        st.just("v % 3 = 1"),
        st.sampled_from(["TRUE", "FALSE"]),
    )


def conditions(columns: tuple[Column, ...]) -> st.SearchStrategy[str]:
    """Mostly such that all columns have values, in some way; sometimes not."""
    leaf = st.one_of([fixing(column) for column in columns] + [opening(c) for c in columns])
    whole = st.tuples(*(fixing(column) for column in columns)).map(" AND ".join)
    anything = st.recursive(
        st.one_of(whole, leaf),
        lambda below: st.one_of(
            st.tuples(below, below).map(lambda two: f"({two[0]} AND {two[1]})"),
            st.tuples(below, below).map(lambda two: f"({two[0]} OR {two[1]})"),
            below.map(lambda one: f"NOT ({one})"),
        ),
        max_leaves=3,
    )
    either = st.tuples(whole, whole).map(lambda two: f"(({two[0]}) OR ({two[1]}))")
    return st.one_of(
        whole, either, anything, st.tuples(whole, anything).map(lambda t: f"{t[0]} AND ({t[1]})")
    )


cases = st.sampled_from(sorted(TABLES)).flatmap(
    lambda name: st.tuples(st.just(name), conditions(TABLES[name]))
)


@pytest.mark.slow
def test_pruned_buckets_give_the_same_answer(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection
) -> None:
    pruned: Counter[bool] = Counter()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(cases)
    def check(case: tuple[str, str]) -> None:
        name, condition = case
        query = f"SELECT v FROM {name} WHERE {condition}"
        expected = sorted(row[0] for row in duck.execute(query).fetchall())
        df = spark.sql(query)
        assert sorted(row.v for row in df.collect()) == expected, condition
        for scan in explain(df).scans:
            pruned[scan.read < BUCKETS] += 1
        with setting(spark, "spark.skewext.enabled", False):
            off = sorted(row.v for row in spark.sql(query).collect())
        assert off == expected, condition

    with ExitStack() as plain:
        for key, value in {**INTERPRETED, "spark.sql.adaptive.enabled": "false"}.items():
            plain.enter_context(setting(spark, key, value))
        check()
    # Conditions that Spark knows to be false leave no scan.
    assert pruned[True] >= EXAMPLES / 5, pruned
    assert pruned[False] >= 1, pruned


@pytest.mark.usefixtures("duck")
def test_scans_are_explained(spark: SparkSession) -> None:
    explanation = explain(spark.sql("SELECT v FROM pruned_is WHERE i = 7 AND s = 'a'"))
    (scan,) = explanation.scans
    assert (scan.by, scan.buckets, scan.read) == (["i", "s"], BUCKETS, 1)
    assert (scan.partitions, scan.advice) == (None, None)
    assert "reads 1 of 16 buckets: pruned by the filters" in str(explanation)
    page = explanation._repr_html_()
    assert "<b>No joins.</b>" in page
    assert "reads 1 of 16 buckets: pruned by the filters" in page
    (scan,) = explain(spark.sql("SELECT v FROM pruned_is WHERE i = 7 AND s > 'a'")).scans
    assert scan.read == BUCKETS
    assert scan.why.endswith("(s)")
    assert scan.advice is not None and scan.advice.startswith("Filter every bucket column with")
