"""Queries as trees, and their SQL for Spark and for DuckDB.

All parts are immutable, so that a smaller query is a copy with one part replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

SPARK, DUCK = 0, 1

FULL, LEFT, RIGHT, INNER = "FULL", "LEFT", "RIGHT", "INNER"
SEMI, ANTI = "SEMI", "ANTI"

#: What the two call differently.
_NAMES: dict[str, tuple[str, str]] = {
    "rand": ("rand()", "random()"),
    "same": ("({} <=> {})", "({} IS NOT DISTINCT FROM {})"),
    SEMI: ("LEFT SEMI", "SEMI"),
    ANTI: ("LEFT ANTI", "ANTI"),
}


@dataclass(frozen=True)
class Ref:
    """A column of a relation; without an alias, one that USING made of two."""

    alias: str | None
    name: str


@dataclass(frozen=True)
class Op:
    """An expression: a pattern with a place for each argument, or "coalesce" of any number."""

    form: str
    args: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Exists:
    """A predicate: whether the relation has a row for which the equalities hold."""

    negated: bool
    leaf: Leaf
    on: tuple[Expr, ...]


Expr = Union[Ref, Op, Exists]


@dataclass(frozen=True)
class Leaf:
    """A table, a view or a part of WITH by name, or a query in parentheses."""

    alias: str
    source: str | Select


@dataclass(frozen=True)
class Join:
    """Two relations and how they are joined: `using` columns, or `on` conditions."""

    kind: str
    left: Source
    right: Source
    using: tuple[str, ...] = ()
    on: tuple[Expr, ...] = ()
    natural: bool = False


Source = Union[Leaf, Join]


@dataclass(frozen=True)
class Item:
    """A column that a query gives."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class Select:
    """One block of a query; `group` is None where nothing is aggregated."""

    items: tuple[Item, ...]
    source: Source
    where: tuple[Expr, ...] = ()
    group: tuple[Expr, ...] | None = None
    distinct: bool = False
    #: Spark's; to DuckDB it is a comment.
    hint: str = ""


@dataclass(frozen=True)
class With:
    """A query with a name: a part of WITH, or a view."""

    name: str
    select: Select
    view: bool = False


@dataclass(frozen=True)
class Query:
    """All of it."""

    body: Select
    withs: tuple[With, ...] = ()


#: The columns of tables and of named queries.
Names = dict[str, tuple[str, ...]]


def coalesce(*args: Expr) -> Expr:
    """Of one argument it is that argument."""
    return args[0] if len(args) == 1 else Op("coalesce", args)


def leaves(source: Source) -> Iterator[Leaf]:
    """The relations that are joined, from left to right."""
    if isinstance(source, Leaf):
        yield source
    else:
        yield from leaves(source.left)
        yield from leaves(source.right)


def expression(expr: Expr, dialect: int) -> str:
    """The SQL of an expression."""
    if isinstance(expr, Ref):
        return expr.name if expr.alias is None else f"{expr.alias}.{expr.name}"
    if isinstance(expr, Exists):
        no = "NOT " if expr.negated else ""
        return f"{no}EXISTS (SELECT 1 FROM {_leaf(expr.leaf, dialect)}{_where(expr.on, dialect)})"
    args = [expression(arg, dialect) for arg in expr.args]
    if expr.form == "coalesce":
        return f"coalesce({', '.join(args)})"
    return _NAMES.get(expr.form, (expr.form, expr.form))[dialect].format(*args)


def statements(query: Query, dialect: int) -> list[str]:
    """What makes the views, and last the query itself."""
    found = [
        f"CREATE OR REPLACE TEMPORARY VIEW {each.name} AS\n{select(each.select, dialect)}"
        for each in query.withs
        if each.view
    ]
    named = [
        f"{each.name} AS (\n{select(each.select, dialect)})"
        for each in query.withs
        if not each.view
    ]
    head = f"WITH {', '.join(named)}\n" if named else ""
    return [*found, head + select(query.body, dialect)]


def select(block: Select, dialect: int) -> str:
    """The SQL of one block."""
    words = ["SELECT", block.hint and f"/*+ {block.hint} */", "DISTINCT" if block.distinct else ""]
    items = ", ".join(f"{expression(i.expr, dialect)} AS {i.name}" for i in block.items)
    head = " ".join([*filter(None, words), items])
    text = f"{head}\nFROM {_source(block.source, dialect)}{_where(block.where, dialect)}"
    if block.group:
        text += f"\nGROUP BY {', '.join(expression(e, dialect) for e in block.group)}"
    return text


def _where(conditions: tuple[Expr, ...], dialect: int) -> str:
    if not conditions:
        return ""
    return f"\nWHERE {' AND '.join(expression(each, dialect) for each in conditions)}"


def _leaf(leaf: Leaf, dialect: int) -> str:
    if isinstance(leaf.source, str):
        return f"{leaf.source} AS {leaf.alias}"
    inner = select(leaf.source, dialect).replace("\n", "\n  ")
    return f"(\n  {inner}) AS {leaf.alias}"


def _source(source: Source, dialect: int) -> str:
    if isinstance(source, Leaf):
        return _leaf(source, dialect)
    left, right = _source(source.left, dialect), _source(source.right, dialect)
    if isinstance(source.right, Join):
        right = f"({right})"
    kind = _NAMES.get(source.kind, (source.kind, source.kind))[dialect]
    if source.natural:
        return f"{left}\n  NATURAL {kind} JOIN {right}"
    if source.using:
        return f"{left}\n  {kind} JOIN {right} USING ({', '.join(source.using)})"
    on = " AND ".join(expression(each, dialect) for each in source.on)
    return f"{left}\n  {kind} JOIN {right} ON {on}"
