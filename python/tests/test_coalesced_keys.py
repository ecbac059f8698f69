"""What looks like the key of a chain of full outer joins, and is not.

Another engine that took `coalesce(a.k, b.k)` for the key of three joined tables gave wrong groups.
Here are the queries of that family: answers of three engines, and what their plans reuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from plans import exchange_count
from pyspark.sql import SparkSession
from random_sql.engines import Engines
from random_sql.plans import joins_of
from random_sql.sinks import comparable
from random_sql.tables import INT, TEXT, Column, Table

CHAIN = """
  a FULL JOIN b ON a.k = b.k
    FULL JOIN c ON coalesce(a.k, b.k) = c.k
"""


@dataclass(frozen=True)
class Case:
    """A query, the inputs of each join of ours in its plan, and its exchanges."""

    name: str
    sql: str
    joins: tuple[int, ...] = (3,)
    exchanges: int = 4


def grouped(name: str, key: str, exchanges: int = 4) -> Case:
    """Group by that expression, above a chain that has three exchanges of its own."""
    sql = f"SELECT {key} AS g, count(*), sum(va), sum(vb), sum(vc) FROM {CHAIN} GROUP BY {key}"
    return Case(f"group by {name}", sql, exchanges=exchanges)


def joined(name: str, on: str, joins: tuple[int, ...], exchanges: int, first: str = "") -> Case:
    """A chain of three with that condition for the third table."""
    first = first or "a.k = b.k"
    sql = f"SELECT a.k, b.k, c.k, va, vb, vc FROM a FULL JOIN b ON {first} FULL JOIN c ON {on}"
    return Case(f"join on {name}", sql, joins, exchanges)


CASES = [
    grouped("all keys", "coalesce(a.k, b.k, c.k)", 3),
    grouped("all keys, nested", "coalesce(coalesce(a.k, b.k), c.k)", 3),
    grouped("the first two keys", "coalesce(a.k, b.k)"),
    grouped("the last two keys", "coalesce(b.k, c.k)"),
    grouped("the outer two keys", "coalesce(a.k, c.k)"),
    grouped("one key", "b.k"),
    grouped("a key that is not null any more", "coalesce(a.k, b.k, c.k, 0)"),
    grouped("arguments that are no columns", "coalesce(a.k + 1, b.k, c.k)"),
    grouped("other columns", "coalesce(a.k, b.j, c.k)"),
    grouped("values beside keys", "coalesce(va, b.k, c.k)"),
    Case(
        "distinct part of the keys",
        f"SELECT DISTINCT coalesce(b.k, a.k) AS g FROM {CHAIN}",
    ),
    Case(
        "window over a part of the keys",
        f"SELECT va, vb, count(*) OVER (PARTITION BY coalesce(a.k, b.k)) AS n FROM {CHAIN}",
    ),
    Case(
        "inner join above with a part of the keys",
        f"SELECT a.va, vb, d.k FROM {CHAIN} JOIN a AS d ON coalesce(a.k, b.k) = d.k",
        exchanges=5,
    ),
    joined("keys in another order", "c.k = coalesce(b.k, a.k)", (3,), 3),
    joined("keys twice", "coalesce(a.k, b.k, a.k) = c.k", (3,), 3),
    joined("a clause twice", "coalesce(a.k, b.k) = c.k AND c.k = coalesce(a.k, b.k)", (3,), 3),
    joined("clauses twice", "coalesce(a.k, b.k) = c.k", (3,), 3, "a.k = b.k AND b.k = a.k"),
    joined("the first key", "a.k = c.k", (), 4),
    joined("the second key", "b.k = c.k", (), 4),
    joined("both keys", "a.k = c.k AND b.k = c.k", (), 4),
    joined("a key that is not null any more", "coalesce(a.k, b.k, 1) = c.k", (), 4),
    joined("a key that is not null too early", "coalesce(a.k, 1, b.k) = c.k", (), 4),
    joined("arguments that are no columns", "coalesce(a.k + 1, b.k) = c.k", (), 4),
    joined("functions of keys", "abs(coalesce(a.k, b.k)) = c.k", (), 4),
    joined("one column with two", "coalesce(a.k, b.k) = c.k", (), 4, "a.k = b.k AND a.k = b.j"),
]


def _table(name: str, keys: list[int | None], form: str) -> Table:
    columns = (
        Column("k", INT),
        Column("j", INT),
        Column(f"v{name}", INT),
        Column(f"s{name}", TEXT),
    )
    rows = [(key, n % 3, n, name * n) for n, key in enumerate(keys)]
    return Table(name, columns, tuple(rows), form)


@pytest.fixture(scope="module")
def engines(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    found = Engines(spark, tmp_path_factory.mktemp("tables"))
    found.load(
        [
            _table("a", [1, 2, 2, 4, None, 7, 0], "values"),
            _table("b", [2, 3, 3, 4, None, 0, 6], "rdd"),
            _table("c", [3, 4, 4, 1, None, 5, 6], "parquet"),
        ]
    )
    yield found
    found.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_keys_and_columns_that_look_like_keys(
    spark: SparkSession, engines: Engines, case: Case
) -> None:
    frame = spark.sql(case.sql)
    ours = comparable(frame.collect(), frame.columns)
    stock = engines.stock_sql([case.sql])
    truth = engines.duck_sql(case.sql)

    assert ours == stock == truth
    assert tuple(joins_of(frame._jdf.queryExecution().optimizedPlan())) == case.joins
    assert exchange_count(frame) == case.exchanges
