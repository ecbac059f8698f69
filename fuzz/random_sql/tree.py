"""Queries as trees, and their SQL for Spark and for DuckDB.

All parts are immutable, so that a smaller query is a copy with one part replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from random_sql.nested import FORMS

SPARK, DUCK = 0, 1

FULL, LEFT, RIGHT, INNER = "FULL", "LEFT", "RIGHT", "INNER"
SEMI, ANTI = "SEMI", "ANTI"

#: What the two call differently.
_NAMES: dict[str, tuple[str, str]] = {
    "rand": ("rand()", "random()"),
    "same": ("({} <=> {})", "({} IS NOT DISTINCT FROM {})"),
    "explode": ("explode(array({}, {}))", "unnest([{}, {}])"),
    SEMI: ("LEFT SEMI", "SEMI"),
    ANTI: ("LEFT ANTI", "ANTI"),
    **FORMS,
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
class Sub:
    """A subquery in an expression: a pattern with places for both lists, and for the rest of it."""

    form: str
    #: Expressions over the columns outside of it, and over those of its own relation.
    outer: tuple[Expr, ...]
    inner: tuple[Expr, ...]
    leaf: Leaf
    on: tuple[Expr, ...]


Expr = Union[Ref, Op, Sub]


@dataclass(frozen=True)
class Leaf:
    """A table, a view or a part of WITH by name, or a query in parentheses."""

    alias: str
    source: str | Block
    #: All of its rows, by a sample of Spark's; to DuckDB it is nothing.
    sample: bool = False


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
    rollup: bool = False
    #: Names of items; all of them where there is a limit, so that it has one answer.
    order: tuple[str, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class Both:
    """Two queries and what is made of their rows, such as their union."""

    kind: str
    left: Block
    right: Block

    @property
    def items(self) -> tuple[Item, ...]:
        """The columns have the names that the left ones have."""
        return self.left.items


Block = Union[Select, Both]


#: What a named query is: a part of WITH, or a view, which Spark may keep the rows of.
WITH, VIEW, FUNCTION = "with", "view", "function"
CACHED = ("cached", "lazily cached", "checkpoint", "localCheckpoint", "table")


@dataclass(frozen=True)
class With:
    """A query with a name."""

    name: str
    select: Block
    how: str = WITH
    #: Of a function with two inputs.
    technique: str = ""
    #: A call of `asof_join` or `latest`.
    versions: object = None
    #: The inputs of a function that have a broadcast hint.
    broadcast: tuple[int, ...] = ()

    @property
    def view(self) -> bool:
        """Whether it is made before the query."""
        return self.how != WITH


@dataclass(frozen=True)
class Query:
    """All of it."""

    body: Block
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
    if isinstance(expr, Sub):
        operands = [expression(each, dialect) for each in (*expr.outer, *expr.inner)]
        rest = f"FROM {_leaf(expr.leaf, dialect)}{_where(expr.on, dialect)}"
        return expr.form.format(*operands, rest)
    args = [expression(arg, dialect) for arg in expr.args]
    if expr.form == "coalesce":
        return f"coalesce({', '.join(args)})"
    return _NAMES.get(expr.form, (expr.form, expr.form))[dialect].format(*args)


def statements(query: Query, dialect: int) -> list[str]:
    """What makes the views, and last the query itself."""
    found = [
        f"CREATE OR REPLACE TEMPORARY VIEW {each.name} AS\n{block(each.select, dialect)}"
        for each in query.withs
        if each.view
    ]
    named = [
        f"{each.name} AS (\n{block(each.select, dialect)})" for each in query.withs if not each.view
    ]
    head = f"WITH {', '.join(named)}\n" if named else ""
    return [*found, head + block(query.body, dialect)]


def block(part: Block, dialect: int) -> str:
    """The SQL of a query without its named parts."""
    if isinstance(part, Both):
        return f"({block(part.left, dialect)})\n{part.kind}\n({block(part.right, dialect)})"
    words = ["SELECT", part.hint and f"/*+ {part.hint} */", "DISTINCT" if part.distinct else ""]
    items = ", ".join(f"{expression(i.expr, dialect)} AS {i.name}" for i in part.items)
    head = " ".join([*filter(None, words), items])
    text = f"{head}\nFROM {_source(part.source, dialect)}{_where(part.where, dialect)}"
    if part.group:
        group = ", ".join(expression(e, dialect) for e in part.group)
        text += f"\nGROUP BY ROLLUP ({group})" if part.rollup else f"\nGROUP BY {group}"
    order = [f"{item.name} NULLS FIRST" for item in part.items if item.name in part.order]
    if order:
        text += f"\nORDER BY {', '.join(order)}"
    return text if part.limit is None else f"{text}\nLIMIT {part.limit}"


def _where(conditions: tuple[Expr, ...], dialect: int) -> str:
    if not conditions:
        return ""
    return f"\nWHERE {' AND '.join(expression(each, dialect) for each in conditions)}"


def _leaf(leaf: Leaf, dialect: int) -> str:
    if isinstance(leaf.source, str):
        sample = " TABLESAMPLE (100 PERCENT)" if leaf.sample and dialect == SPARK else ""
        return f"{leaf.source}{sample} AS {leaf.alias}"
    inner = block(leaf.source, dialect).replace("\n", "\n  ")
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
