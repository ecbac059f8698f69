"""Values and tables as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from random_sql.tables import Column, Raw
from random_sql.tree import SPARK


def values(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> str:
    """A query of Spark's that gives the rows and needs nothing else."""
    heads = [f"CAST(column{i} AS {c.kind.spark}) AS {c.name}" for i, c in enumerate(columns)]
    if rows:
        listed = ", ".join(row(each, SPARK) for each in rows)
        names = ", ".join(f"column{i}" for i in range(len(columns)))
        return f"SELECT {', '.join(heads)} FROM VALUES {listed} AS rows({names})"
    nulls = ", ".join(f"CAST(NULL AS {c.kind.spark}) AS {c.name}" for c in columns)
    return f"SELECT {nulls} WHERE false"


def from_range(columns: Sequence[Column], rows: Sequence[Sequence[Any]], parts: int) -> str:
    """The same by numbers of rows."""
    if not rows:
        return values(columns, rows)
    cells = [
        ", ".join(f"CAST({literal(each[i], SPARK)} AS {c.kind.spark})" for each in rows)
        for i, c in enumerate(columns)
    ]
    heads = [
        f"element_at(array({cell}), CAST(id + 1 AS INT)) AS {column.name}"
        for cell, column in zip(cells, columns)
    ]
    return f"SELECT {', '.join(heads)} FROM range(0, {len(rows)}, 1, {parts})"


def row(values: Sequence[Any], dialect: int) -> str:
    """A row of VALUES."""
    return f"({', '.join(literal(value, dialect) for value in values)})"


def literal(value: Any, dialect: int) -> str:
    """A value as SQL."""
    if isinstance(value, Raw):
        return value.spark if dialect == SPARK else value.duck
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"CAST('{value}' AS DOUBLE)"
    return str(value) if isinstance(value, (int, Decimal)) else f"'{value}'"


def schema(columns: Sequence[Column]) -> str:
    """The columns as Spark's DDL says them."""
    return ", ".join(f"{c.name} {c.kind.spark}{'' if c.nullable else ' NOT NULL'}" for c in columns)
