"""Which columns there are where, and queries without what is not there any more."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from random_sql.nested import FORMS
from random_sql.tree import (
    ANTI,
    RIGHT,
    SEMI,
    Block,
    Both,
    Expr,
    Item,
    Join,
    Leaf,
    Names,
    Op,
    Query,
    Ref,
    Select,
    Source,
    Sub,
    coalesce,
)


@dataclass(frozen=True)
class Scope:
    """The columns of a source: those that `SELECT *` has, and all that can be named."""

    shown: tuple[Ref, ...]
    known: frozenset[Ref]

    def shared(self, name: str) -> bool:
        """Whether a column can be joined by USING this name."""
        return sum(ref.name == name for ref in self.shown) == 1


def scope_of(source: Source, names: Names) -> Scope:
    """The columns of a source that is right."""
    if isinstance(source, Leaf):
        if isinstance(source.source, str):
            columns = names[source.source]
        else:
            columns = tuple(item.name for item in source.source.items)
        refs = tuple(Ref(source.alias, name) for name in columns)
        return Scope(refs, frozenset(refs))
    return joined(source, scope_of(source.left, names), scope_of(source.right, names))


def joined(join: Join, left: Scope, right: Scope) -> Scope:
    """The columns of a join, from those of its sides."""
    merged = tuple(Ref(None, name) for name in join.using)
    # A name of an earlier USING now means two columns.
    named = {ref for ref in left.known | right.known if ref.alias is not None}
    mine = tuple(ref for ref in left.shown if ref.name not in join.using)
    if join.kind in (SEMI, ANTI):
        shown = (*merged, *mine)
        known = {ref for ref in left.known if ref.alias is not None}
    else:
        theirs = tuple(ref for ref in right.shown if ref.name not in join.using)
        shown = (*merged, *mine, *theirs)
        known = named
    names = [ref.name for ref in shown]
    unqualified = {ref for ref in shown if ref.alias is None and names.count(ref.name) == 1}
    return Scope(shown, frozenset(known | unqualified))


def common_names(left: Scope, right: Scope) -> tuple[str, ...] | None:
    """What NATURAL joins by; None where it would not be allowed."""
    ours = [ref.name for ref in left.shown]
    theirs = [ref.name for ref in right.shown]
    found = tuple(name for name in dict.fromkeys(ours) if name in theirs)
    unique = all(ours.count(name) == theirs.count(name) == 1 for name in found)
    return found if found and unique else None


def pruned(query: Query, tables: Names) -> Query | None:
    """The query without whatever names a column that is gone; None if nothing is left."""
    names = dict(tables)
    withs = []
    for each in query.withs:
        kept = _block(each.select, names)
        if kept is not None:
            names[each.name] = tuple(item.name for item in kept.items)
            withs.append(replace(each, select=kept))
    body = _block(query.body, names)
    if body is None:
        return None
    used = set(_tables_of(body))
    for each in reversed(withs):
        if each.name in used:
            used |= set(_tables_of(each.select))
    return Query(body, tuple(each for each in withs if each.name in used))


def tables_of(query: Query) -> set[str]:
    """Names of all relations that are read."""
    found = set(_tables_of(query.body))
    for each in query.withs:
        found |= set(_tables_of(each.select))
    return found


def looks_of(part: object) -> set[str]:
    """The expressions that look into nested columns."""
    if isinstance(part, Op) and part.form in FORMS:
        return {part.form}.union(*map(looks_of, part.args))
    parts = part if isinstance(part, tuple) else getattr(part, "__dict__", {}).values()
    return {form for each in parts for form in looks_of(each)}


def _tables_of(part: object) -> list[str]:
    if isinstance(part, Leaf) and isinstance(part.source, str):
        return [part.source]
    if isinstance(part, tuple):
        return [name for each in part for name in _tables_of(each)]
    fields = getattr(part, "__dict__", {})
    return [name for each in fields.values() for name in _tables_of(each)]


def _block(block: Block, names: Names) -> Block | None:
    if isinstance(block, Select):
        return _select(block, names)
    left, right = _block(block.left, names), _block(block.right, names)
    if left is None or right is None:
        return None
    both = {item.name for item in left.items} & {item.name for item in right.items}
    return kept_items(replace(block, left=left, right=right), both) if both else None


def kept_items(block: Block, names: Collection[str]) -> Block:
    """The query with only the columns of these names."""
    if isinstance(block, Both):
        left, right = kept_items(block.left, names), kept_items(block.right, names)
        return replace(block, left=left, right=right)
    return replace(block, items=tuple(item for item in block.items if item.name in names))


def _select(block: Select, names: Names) -> Select | None:
    source = _source(block.source, names)
    if source is None:
        return None
    scope = scope_of(source, names)
    known = scope.known
    items = []
    for item in block.items:
        expr = fixed(item.expr, known, names)
        if expr is not None:
            items.append(replace(item, expr=expr))
    if not items:
        # A query needs a column, whichever.
        first = next(ref for ref in scope.shown if ref in known)
        items = [Item("c", first if block.group is None else Op("count(*)"))]
    group = None if block.group is None else _fixed_all(block.group, known, names)
    return replace(
        block,
        items=tuple(items),
        source=source,
        where=_fixed_all(block.where, known, names),
        group=group,
        hint=block.hint,
    )


def _source(source: Source, names: Names) -> Source | None:
    if isinstance(source, Leaf):
        if isinstance(source.source, str):
            return source if source.source in names else None
        inner = _block(source.source, names)
        return None if inner is None else replace(source, source=inner)
    left, right = _source(source.left, names), _source(source.right, names)
    if left is None or right is None:
        return None
    ours, theirs = scope_of(left, names), scope_of(right, names)
    using = tuple(name for name in source.using if ours.shared(name) and theirs.shared(name))
    on = _fixed_all(source.on, ours.known | theirs.known, names)
    if not using and not on:
        return None
    natural = source.natural and common_names(ours, theirs) == using and source.kind != RIGHT
    return replace(source, left=left, right=right, using=using, on=on, natural=natural)


def fixed(expr: Expr, known: frozenset[Ref], names: Names) -> Expr | None:
    """The expression, without arguments of coalesce that name what is not known."""
    if isinstance(expr, Ref):
        return expr if expr in known else None
    if isinstance(expr, Sub):
        leaf = _source(expr.leaf, names)
        if not isinstance(leaf, Leaf):
            return None
        there = scope_of(leaf, names).known
        outer, inner = _fixed_all(expr.outer, known, names), _fixed_all(expr.inner, there, names)
        on = _fixed_all(expr.on, known | there, names)
        whole = len(outer) == len(expr.outer) and len(inner) == len(expr.inner)
        # Without any of them it would need nothing of its relation.
        return (
            replace(expr, outer=outer, inner=inner, leaf=leaf, on=on)
            if whole and (inner or on)
            else None
        )
    args = _fixed_all(expr.args, known, names)
    if len(args) == len(expr.args):
        return Op(expr.form, args)
    return coalesce(*args) if expr.form == "coalesce" and args else None


def _fixed_all(exprs: tuple[Expr, ...], known: frozenset[Ref], names: Names) -> tuple[Expr, ...]:
    found = (fixed(expr, known, names) for expr in exprs)
    return tuple(expr for expr in found if expr is not None)
