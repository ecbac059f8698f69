"""Making a query that shows a fault smaller, as long as it shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from random_sql.scope import kept_items, pruned, tables_of
from random_sql.tables import Table
from random_sql.tree import (
    VIEW,
    WITH,
    Block,
    Both,
    Expr,
    Join,
    Leaf,
    Op,
    Query,
    Select,
    Source,
    Sub,
    coalesce,
)


@dataclass(frozen=True)
class Example:
    """A query with all that its answer depends on."""

    query: Query
    tables: tuple[Table, ...]
    settings: Mapping[str, str]
    sink: str = "collect"


def reduced(example: Example, fails: Callable[[Example], bool], tries: int) -> Example:
    """A small example that fails as well; greedy, and never looks at more than `tries`."""
    left = tries
    found = True
    while found and left > 0:
        found = False
        for smaller in smaller_examples(example):
            left -= 1
            if fails(smaller):
                example, found = smaller, True
                break
            if left <= 0:
                break
    return example


def smaller_examples(example: Example) -> Iterator[Example]:
    """Examples with one thing less, the largest things first."""
    names = {table.name: tuple(c.name for c in table.columns) for table in example.tables}
    seen = {example.query}
    for query in _queries(example.query):
        kept = pruned(query, names)
        if kept is not None and kept not in seen:
            seen.add(kept)
            used = tables_of(kept)
            tables = tuple(table for table in example.tables if table.name in used)
            yield replace(example, query=kept, tables=tables)
    if example.sink != "collect":
        yield replace(example, sink="collect")
    for key in example.settings:
        rest = {k: v for k, v in example.settings.items() if k != key}
        yield replace(example, settings=rest)
    for number, table in enumerate(example.tables):
        for smaller in _smaller_tables(table):
            tables = (*example.tables[:number], smaller, *example.tables[number + 1 :])
            yield replace(example, tables=tables)


def _smaller_tables(table: Table) -> Iterator[Table]:
    if table.layers:
        yield replace(table, layers=(), noise=())
    if table.form != "values":
        yield replace(table, form="values")
    for number, layer in enumerate(table.layers):
        rest = (*table.layers[:number], *table.layers[number + 1 :])
        yield replace(table, layers=rest, noise=table.noise if "filter" in rest else ())
        if layer.startswith("persist") and layer != "persist MEMORY_AND_DISK":
            usual = (*table.layers[:number], "persist MEMORY_AND_DISK", *table.layers[number + 1 :])
            yield replace(table, layers=usual)
    if len(table.noise) > 1:
        yield replace(table, noise=table.noise[:1])
    size = len(table.rows)
    step = size
    while step:
        for start in range(0, size, step):
            yield replace(table, rows=table.rows[:start] + table.rows[start + step :])
        step //= 2
    for number, row in enumerate(table.rows):
        for place, value in enumerate(row):
            simple = table.columns[place].kind.values[0]
            if value is not None and value != simple:
                changed = (*row[:place], simple, *row[place + 1 :])
                rows = (*table.rows[:number], changed, *table.rows[number + 1 :])
                yield replace(table, rows=rows)


def _queries(query: Query) -> Iterator[Query]:
    # A part of it may show the fault by itself.
    for inner in _blocks(query.body):
        yield replace(query, body=inner)
    for each in query.withs:
        yield Query(each.select, tuple(w for w in query.withs if w is not each))
    for number, each in enumerate(query.withs):
        # Once, and where it is used.
        inline = _without(query.body, each.name, each.select)
        yield Query(inline, query.withs[:number] + query.withs[number + 1 :])
        if each.view:
            plain = replace(each, how=WITH if each.how == VIEW else VIEW)
            withs = (*query.withs[:number], plain, *query.withs[number + 1 :])
            yield replace(query, withs=withs)
        for select in _smaller(each.select):
            changed = replace(each, select=select)
            withs = (*query.withs[:number], changed, *query.withs[number + 1 :])
            yield replace(query, withs=withs)
    for body in _smaller(query.body):
        yield replace(query, body=body)


def _blocks(part: Block | Source) -> Iterator[Block]:
    if isinstance(part, Both):
        yield part.left
        yield part.right
    elif isinstance(part, Select):
        yield from _blocks(part.source)
    elif isinstance(part, Join):
        yield from _blocks(part.left)
        yield from _blocks(part.right)
    elif not isinstance(part.source, str):
        yield part.source


def _without(part: Any, name: str, select: Block) -> Any:
    """The tree with the named query where its name was."""
    if isinstance(part, Leaf) and part.source == name:
        return replace(part, source=select, sample=False)
    if isinstance(part, tuple):
        return tuple(_without(each, name, select) for each in part)
    if hasattr(part, "__dataclass_fields__"):
        fields = {key: _without(value, name, select) for key, value in vars(part).items()}
        return replace(part, **fields)
    return part


def _smaller(block: Block) -> Iterator[Block]:
    if isinstance(block, Select):
        yield from _selects(block)
        return
    yield block.left
    yield block.right
    names = [item.name for item in block.items]
    if len(names) > 1:
        for name in names:
            yield kept_items(block, {each for each in names if each != name})
    for left in _smaller(block.left):
        if [item.name for item in left.items] == names:
            yield replace(block, left=left)
    for right in _smaller(block.right):
        if [item.name for item in right.items] == names:
            yield replace(block, right=right)


def _selects(block: Select) -> Iterator[Select]:
    if block.limit is not None:
        yield replace(block, limit=None)
    elif block.order:
        yield replace(block, order=())
    if block.rollup:
        yield replace(block, rollup=False)
    if block.distinct:
        yield replace(block, distinct=False)
    if block.hint:
        yield replace(block, hint="")
    if block.group is not None:
        # Without aggregates; what they were made of comes out.
        groups = set(block.group)
        plain = [item for item in block.items if item.expr in groups]
        if plain:
            yield replace(block, items=tuple(plain), group=None)
    for source in _sources(block.source):
        yield replace(block, source=source)
    for where in _fewer(block.where):
        yield replace(block, where=where)
    if len(block.items) > 1:
        for number in range(len(block.items)):
            yield replace(block, items=block.items[:number] + block.items[number + 1 :])
    if block.group is None:
        for number, item in enumerate(block.items):
            for expr in _exprs(item.expr):
                changed = replace(item, expr=expr)
                items = (*block.items[:number], changed, *block.items[number + 1 :])
                yield replace(block, items=items)


def _sources(source: Source) -> Iterator[Source]:
    if isinstance(source, Leaf):
        if source.sample:
            yield replace(source, sample=False)
        inside = source.source
        if isinstance(inside, Select) and inside.group is None and not inside.distinct:
            for inner in _leaves(inside.source):
                yield replace(source, source=inner.source)
        if not isinstance(inside, str):
            for select in _smaller(inside):
                yield replace(source, source=select)
        return
    yield source.left
    yield source.right
    for left in _sources(source.left):
        yield replace(source, left=left)
    for right in _sources(source.right):
        yield replace(source, right=right)
    if source.natural:
        yield replace(source, natural=False)
    if len(source.using) > 1:
        for number in range(len(source.using)):
            yield replace(source, using=source.using[:number] + source.using[number + 1 :])
    for on in _fewer(source.on):
        if on:
            yield replace(source, on=on)


def _leaves(source: Source) -> Iterator[Leaf]:
    if isinstance(source, Leaf):
        yield source
    else:
        yield from _leaves(source.left)
        yield from _leaves(source.right)


def _fewer(exprs: tuple[Expr, ...]) -> Iterator[tuple[Expr, ...]]:
    for number in range(len(exprs)):
        yield exprs[:number] + exprs[number + 1 :]
    for number, each in enumerate(exprs):
        for expr in _exprs(each):
            yield (*exprs[:number], expr, *exprs[number + 1 :])


def _exprs(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Sub):
        yield from expr.outer
        yield Op("1")
        for number in range(len(expr.on)):
            yield replace(expr, on=expr.on[:number] + expr.on[number + 1 :])
        for source in _sources(expr.leaf):
            if isinstance(source, Leaf):
                yield replace(expr, leaf=source)
        return
    if not isinstance(expr, Op):
        return
    if expr.form == "coalesce":
        for number in range(len(expr.args)):
            yield coalesce(*expr.args[:number], *expr.args[number + 1 :])
    else:
        yield from expr.args
    for number, arg in enumerate(expr.args):
        for smaller in _exprs(arg):
            yield Op(expr.form, (*expr.args[:number], smaller, *expr.args[number + 1 :]))
