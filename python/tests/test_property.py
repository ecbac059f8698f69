"""Random joins, against Spark's own and against DuckDB."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from amount import TEST_ALL
from duck import duck_join
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from multisets import assert_same_rows
from pyspark.sql import SparkSession
from stock import stock_join

from pyspark_skewext import multi_join

# Few by default to keep the suite quick; more in the environment for a thorough run.
EXAMPLES = int(os.environ.get("SKEWEXT_EXAMPLES", "20" if TEST_ALL else "12"))


@dataclass(frozen=True)
class Kind:
    """A type of column: its name in Spark, in DuckDB, and some values that meet each other."""

    spark: str
    duck: str
    values: tuple[Any, ...]


INTS = (0, 1, -1, 2**31 - 1)
DECIMALS = (Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"))
# Types in one tuple can be joined with each other.
FAMILIES = [
    (Kind("int", "INTEGER", INTS), Kind("bigint", "BIGINT", (*INTS, 2**40))),
    (Kind("string", "VARCHAR", ("", "a", "A", "ä", "a longer text than eight bytes")),),
    (Kind("double", "DOUBLE", (0.0, -0.0, float("nan"), 1.5, float("inf"))),),
    (Kind("date", "DATE", (datetime.date(1969, 12, 31), datetime.date(2024, 2, 29))),),
    (Kind("decimal(5,2)", "DECIMAL(5,2)", DECIMALS),
     Kind("decimal(22,3)", "DECIMAL(22,3)", (*DECIMALS, Decimal("0.125")))),
]  # fmt: skip
VALUES = [kind for family in FAMILIES for kind in family]


@dataclass
class Table:
    names: list[str]
    kinds: list[Kind]
    rows: list[tuple[Any, ...]]
    partitions: int


@dataclass
class Case:
    tables: list[Table]
    on: list[str]
    roles: list[str]
    suffixes: list[str] | None
    indicator: str | None


@st.composite
def cases(draw: st.DrawFn) -> Case:
    families = draw(st.lists(st.sampled_from(FAMILIES), min_size=1, max_size=2))
    on = [f"key{n}" for n in range(len(families))]
    count = draw(st.integers(2, 5))
    tables = [draw(_tables(families, on, n)) for n in range(count)]
    roles = draw(
        st.one_of(
            st.just(["optional"] * count),
            st.lists(
                st.sampled_from(["optional", "required", "excluded"]),
                min_size=count,
                max_size=count,
            ).filter(lambda roles: set(roles) != {"excluded"}),
        )
    )
    suffixes = draw(st.sampled_from([None, [f"_{n}" for n in range(count)]]))
    return Case(tables, on, roles, suffixes, draw(st.sampled_from([None, "sources"])))


@st.composite
def _tables(draw: st.DrawFn, families: Sequence[tuple[Kind, ...]], on: list[str], n: int) -> Table:
    keys = [draw(st.sampled_from(family)) for family in families]
    names = draw(st.sampled_from([on, [f"{name}_of_{n}" for name in on]]))
    # "v" is in several tables, the other name in one.
    others = draw(st.lists(st.sampled_from(["v", f"own{n}"]), max_size=2, unique=True))
    kinds = [*keys, *(draw(st.sampled_from(VALUES)) for _ in others)]
    cells = [st.one_of(st.none(), st.sampled_from(kind.values)) for kind in kinds]
    # Keys are seldom null, so that most rows have a chance to meet others.
    cells[: len(keys)] = [st.sampled_from([*kind.values, *kind.values, None]) for kind in keys]
    rows = draw(st.lists(st.tuples(*cells), max_size=7))
    return Table([*names, *others], kinds, rows, draw(st.integers(1, 3)))


@pytest.mark.slow
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="SKEWEXT_EXAMPLES" not in os.environ,
    # The session is shared on purpose.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=cases())
def test_random_joins(spark: SparkSession, case: Case) -> None:
    keys = len(case.on)
    inputs = []
    for table in case.tables:
        columns = ", ".join(f"{name} {kind.spark}" for name, kind in zip(table.names, table.kinds))
        df = spark.createDataFrame(table.rows, columns).coalesce(table.partitions)
        inputs.append((df, table.names[:keys]))
    joined = multi_join(
        *inputs,
        on=case.on,
        how=case.roles,
        suffixes=case.suffixes,
        indicator=case.indicator,
    )
    actual = joined.collect()

    names, expected = stock_join(inputs, case.on, case.roles, case.suffixes, case.indicator)
    assert joined.columns == names
    assert_same_rows(actual, expected)

    tables = [([kind.duck for kind in table.kinds], table.rows) for table in case.tables]
    without_indicator = [row[:-1] if case.indicator else row for row in actual]
    assert_same_rows(without_indicator, duck_join(tables, keys, case.roles))
