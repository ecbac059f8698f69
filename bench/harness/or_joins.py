"""Joins with OR of customers by their e-mail address or their phone number.

An address and a number have two rows in each table, on average. One row in ten has no address, and
one in ten no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from harness.questions import OURS, Question, Way, described

_ROWS = 20_000
"""Of a scale factor, in each table."""

WAYS = ("stock", "ours")

_PAIRS = {"BroadcastNestedLoopJoin", "CartesianProduct"}

_ON = "a.email = b.email OR a.phone = b.phone"

#: Name, what it is, query.
_QUERIES = (
    ("inner", "inner join", f"SELECT a.*, b.id AS other, b.v AS w FROM a JOIN b ON {_ON}"),
    (
        "inner-three",
        "inner join with three parts and another condition",
        f"SELECT a.id, b.id AS other FROM a JOIN b ON ({_ON} OR a.id = b.v) AND a.v < b.v",
    ),
    ("left", "left join", f"SELECT a.*, b.id AS other, b.v AS w FROM a LEFT JOIN b ON {_ON}"),
    ("full", "full join", f"SELECT a.*, b.id AS other, b.v AS w FROM a FULL JOIN b ON {_ON}"),
    ("exists", "EXISTS", f"SELECT * FROM a WHERE EXISTS (SELECT * FROM b WHERE {_ON})"),
    ("not-exists", "NOT EXISTS", f"SELECT * FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE {_ON})"),
)


@dataclass(frozen=True)
class OrJoin(Question):
    """A join with OR, whose plan compares all pairs in stock Spark, and no pairs in ours."""

    def problem(self, way: Way, joins: Mapping[str, int]) -> str | None:
        """What is wrong with a plan."""
        pairs = _PAIRS & set(joins)
        if bool(pairs) == (way.join == OURS):
            return f"the plan has {described(joins)}"
        return None


def generate(scale: float, folder: Path) -> Path:
    """Make the tables, if they are missing."""
    last = folder / "b.parquet"
    if last.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rows = max(1, round(_ROWS * scale))
    with duckdb.connect() as connection:
        for seed, name in enumerate(("a", "b")):
            making = folder / f"{name}.making"
            connection.execute(f"COPY ({_table(seed, rows)}) TO '{making}' (FORMAT parquet)")
            making.rename(folder / f"{name}.parquet")
    return folder


def _table(seed: int, rows: int) -> str:
    def random(salt: int, below: int) -> str:
        return f"CAST(hash(i, {10 * seed + salt}) % {below} AS BIGINT)"

    people = max(1, rows // 2)
    return (
        f"SELECT i AS id, CASE WHEN {random(1, 10)} > 0 "
        f"THEN 'person' || {random(2, people)} || '@example.org' END AS email, "
        f"CASE WHEN {random(3, 10)} > 0 THEN 4900000000 + {random(4, people)} END AS phone, "
        f"{random(5, rows)} AS v FROM range({rows}) numbers(i)"
    )


def joins(data: Path, conf: dict[str, str]) -> list[Question]:
    """The queries."""
    return [OrJoin(name, about, sql, data, conf, ways=WAYS) for name, about, sql in _QUERIES]
