"""The same joins by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb


def duck_join(
    tables: Sequence[tuple[Sequence[str], Sequence[Sequence[Any]]]],
    keys: int,
    roles: Sequence[str] | None = None,
) -> list[tuple[Any, ...]]:
    """Rows of the join of tables given as (SQL types of the columns, rows), keys first."""
    with duckdb.connect() as connection:
        for n, (types, rows) in enumerate(tables):
            names = [f"k{m}" if m < keys else f"v{n}_{m}" for m in range(len(types))]
            columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, types))
            connection.execute(f"CREATE TABLE t{n} ({columns}, p{n} BOOLEAN)")
            if rows:
                marks = ", ".join("?" * len(types))
                connection.executemany(f"INSERT INTO t{n} VALUES ({marks}, true)", rows)
        return connection.execute(_query(tables, keys, roles)).fetchall()


def _query(tables: Sequence[tuple[Sequence[str], Any]], keys: int, roles: Any) -> str:
    roles = roles or ["optional"] * len(tables)
    using = ", ".join(f"k{m}" for m in range(keys))
    chain = "t0" + "".join(f" FULL OUTER JOIN t{n} USING ({using})" for n in range(1, len(tables)))
    values = [f"k{m}" for m in range(keys)]
    for n, (types, _) in enumerate(tables):
        if roles[n] != "excluded":
            values += [f"v{n}_{m}" for m in range(keys, len(types))]
    tests = {"required": "p{} IS NOT NULL", "excluded": "p{} IS NULL", "optional": "TRUE"}
    where = " AND ".join(tests[role].format(n) for n, role in enumerate(roles))
    return f"SELECT {', '.join(values)} FROM {chain} WHERE {where}"
