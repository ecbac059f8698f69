"""Joins with OR of customers by their e-mail address or their phone number.

An address and a number have two rows in each table, on average. One row in ten has no address, and
one in ten no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.questions import Question, Way, described
from harness.tables import save

_ROWS = 20_000
"""Of a scale factor, in each table."""

#: How many times as many rows the large tables have.
LARGE = 15

_WAYS = ("stock", "by-hand", "ours", "duckdb")
_LARGE_WAYS = ("by-hand", "ours")

_PAIRS = {"BroadcastNestedLoopJoin", "CartesianProduct"}

_KEYS = ("a.email = b.email", "a.phone = b.phone")
_THREE = (*_KEYS, "a.id = b.v")
_ON = " OR ".join(_KEYS)
_COLUMNS = "a.*, b.id AS other, b.v AS w"
_ONLY_A = "a.*, CAST(NULL AS BIGINT) AS other, CAST(NULL AS BIGINT) AS w"
_ONLY_B = (
    "CAST(NULL AS BIGINT) AS id, CAST(NULL AS STRING) AS email, CAST(NULL AS BIGINT) AS phone, "
    "CAST(NULL AS BIGINT) AS v, b.id AS other, b.v AS w"
)


def _union(*queries: str) -> str:
    return " UNION ALL ".join(queries)


def _inner(columns: str, keys: tuple[str, ...], more: str = "") -> str:
    """A join for each part, without the pairs of the parts before."""
    return _union(
        *(
            f"SELECT {columns} FROM a JOIN b ON {key}{more}"
            + "".join(f" AND ({before}) IS NOT TRUE" for before in keys[:n])
            for n, key in enumerate(keys)
        )
    )


def _none(columns: str, one: str = "a", other: str = "b") -> str:
    """The rows of a side without a match."""
    antis = (f"LEFT ANTI JOIN {other} ON {key}" for key in _KEYS)
    return f"SELECT {columns} FROM {one} {' '.join(antis)}"


_EXISTS = _union(
    f"SELECT a.* FROM a LEFT SEMI JOIN b ON {_KEYS[0]}",
    f"SELECT a.* FROM a LEFT ANTI JOIN b ON {_KEYS[0]} LEFT SEMI JOIN b ON {_KEYS[1]}",
)

#: Name, what it is, query, the query by hand.
_QUERIES = (
    (
        "inner",
        "inner join",
        f"SELECT {_COLUMNS} FROM a JOIN b ON {_ON}",
        _inner(_COLUMNS, _KEYS),
    ),
    (
        "inner-three",
        "inner join with three parts and another condition",
        f"SELECT a.id, b.id AS other FROM a JOIN b ON ({' OR '.join(_THREE)}) AND a.v < b.v",
        _inner("a.id, b.id AS other", _THREE, " AND a.v < b.v"),
    ),
    (
        "left",
        "left join",
        f"SELECT {_COLUMNS} FROM a LEFT JOIN b ON {_ON}",
        _union(_inner(_COLUMNS, _KEYS), _none(_ONLY_A)),
    ),
    (
        "full",
        "full join",
        f"SELECT {_COLUMNS} FROM a FULL JOIN b ON {_ON}",
        _union(_inner(_COLUMNS, _KEYS), _none(_ONLY_A), _none(_ONLY_B, "b", "a")),
    ),
    (
        "exists",
        "EXISTS",
        f"SELECT * FROM a WHERE EXISTS (SELECT * FROM b WHERE {_ON})",
        _EXISTS,
    ),
    (
        "not-exists",
        "NOT EXISTS",
        f"SELECT * FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE {_ON})",
        _none("a.*"),
    ),
)


@dataclass(frozen=True)
class OrJoin(Question):
    """A join with OR, whose plan compares all pairs in stock Spark only."""

    def problem(self, way: Way, joins: Mapping[str, int]) -> str | None:
        """What is wrong with a plan."""
        pairs = _PAIRS & set(joins)
        if bool(pairs) != (way.name == "stock"):
            return f"the plan has {described(joins)}"
        return super().problem(way, joins)


def _rows(scale: float) -> int:
    return max(1, round(_ROWS * scale))


def generate(scale: float, folder: Path) -> Path:
    """Make the tables, if they are missing."""
    return save({name: _table(seed, _rows(scale)) for seed, name in enumerate("ab")}, folder)


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


def joins(data: Path, scale: float, conf: dict[str, str]) -> list[Question]:
    """The queries."""
    rows = _rows(scale)
    return [
        OrJoin(
            name,
            about,
            sql,
            data,
            conf,
            # Polars' joins with other conditions than equal keys are inner ones.
            ways=(*_WAYS, "polars") if "inner" in name else _WAYS,
            by_hand=by_hand,
            pairs=rows * rows,
        )
        for name, about, sql, by_hand in _QUERIES
    ]


def large_joins(data: Path, scale: float, conf: dict[str, str]) -> list[Question]:
    """The same over large tables, of which stock Spark would compare all pairs for an hour."""
    return [
        replace(
            question,
            name=f"{question.name}-large",
            about=f"{question.about}, {LARGE} times the rows",
            ways=_LARGE_WAYS,
            smaller=question.name,
        )
        for question in joins(data, LARGE * scale, conf)
    ]
