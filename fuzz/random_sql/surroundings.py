"""Surroundings of joins: set operations, limits, subqueries; and their names for counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from random_sql.columns import Col, Keys, Relation
from random_sql.expressions import LITERALS, Expressions
from random_sql.scope import kept_items
from random_sql.tables import is_raw
from random_sql.tree import (
    Block,
    Both,
    Expr,
    Item,
    Join,
    Leaf,
    Op,
    Query,
    Ref,
    Select,
    Source,
    Sub,
)

_SETS = ("UNION ALL",) * 4 + ("UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")

_EXISTS = ("EXISTS (SELECT 1 {})", "NOT EXISTS (SELECT 1 {})")
_IN = ("{} IN (SELECT {} {})",) * 2 + ("{} NOT IN (SELECT {} {})",)
_SCALAR = (
    "{} <= (SELECT max({}) {})",
    "{} >= (SELECT min({}) {})",
    "({} = (SELECT min({}) {})) IS NOT TRUE",
)

#: Makes a relation with at most so many joins in it.
Make = Callable[[int], tuple[Source, Relation]]


class Surroundings:
    """Puts something around a query, or a subquery into a condition."""

    def __init__(self, random: Random, expressions: Expressions) -> None:
        self._random = random
        self._expressions = expressions

    def around(self, block: Block, relation: Relation, make: Make) -> tuple[Block, Relation]:
        """A set operation with another query, a sort, or the first rows of an order."""
        names = [name for name, col in _columns(relation).items() if not is_raw(col.family)]
        if not names:
            return block, relation
        choice = self._random.random()
        if choice < 0.5:
            return self._both(kept_items(block, names), _only(relation, names), make)
        if not isinstance(block, Select):
            return block, relation
        if choice < 0.7:
            some = self._random.sample(names, self._random.randint(1, len(names)))
            return replace(block, order=tuple(some)), relation
        relation = _only(relation, names)
        count = self._random.choice((1, 2, 4, 8))
        limited = kept_items(replace(block, order=tuple(names), limit=count), names)
        return limited, replace(relation, rows=min(relation.rows, count))

    def _both(self, left: Block, ours: Relation, make: Make) -> tuple[Block, Relation]:
        random = self._random
        source, relation = make(random.choice((0, 0, 0, 1)))
        items, values = [], []
        keys: Keys = {}
        for name, col in _columns(ours).items():
            other = self._alike(name, col, relation)
            items.append(Item(name, other.expr))
            repeats = col.repeats + (
                other.repeats if isinstance(other.expr, Ref) else relation.rows
            )
            both = Col(Ref(None, name), col.family, repeats)
            if name in ours.keys:
                keys[name] = (both,)
            else:
                values.append(both)
        where = (self._expressions.predicate(relation),) if random.random() < 0.3 else ()
        # Rows that both have, or an intersection would have none.
        kind = random.choice(_SETS)
        right = Select(tuple(items), source, where)
        return Both(kind, left, right), Relation(ours.rows + relation.rows, keys, tuple(values))

    def _alike(self, name: str, col: Col, relation: Relation) -> Col:
        """A column of the same family."""
        random = self._random
        if name in relation.keys and relation.keys[name][0].family == col.family:
            return self._expressions.full_key(relation, name)
        alike = [c for c in (*relation.values, *relation.own_keys) if c.family == col.family]
        if alike and random.random() < 0.8:
            return random.choice(alike)
        return Col(Op(random.choice(LITERALS[col.family])), col.family, relation.rows)

    def predicate(self, relation: Relation, leaf: Leaf, inner: Relation) -> Expr:
        """A condition with a subquery: EXISTS, IN, or one that gives a value."""
        random = self._random
        choice = random.random()
        make = self._expressions
        a, b = make.full_key(relation, "k"), make.full_key(inner, "k")
        if random.random() < 0.3:
            a = make.some_key(relation, "k")
        if a.family != b.family:
            a = make.full_key(relation, "k")
        equal = Op("{} = {}", (a.expr, b.expr))
        if choice < 0.5:
            return Sub(random.choice(_EXISTS), (), (), leaf, (equal,))
        if choice < 0.8:
            return Sub(random.choice(_IN), (a.expr,), (b.expr,), leaf, ())
        on = (equal,) if random.random() < 0.6 else ()
        return Sub(random.choice(_SCALAR), (a.expr,), (b.expr,), leaf, on)

    def scalar(self, relation: Relation, leaf: Leaf, inner: Relation) -> Col:
        """A column with one value of another relation for each row, or one for all."""
        random = self._random
        make = self._expressions
        value = random.choice([c for c in (*inner.values, *inner.own_keys) if not is_raw(c.family)])
        form, family = random.choice(
            (
                ("(SELECT max({}) {})", value.family),
                ("(SELECT min({}) {})", value.family),
                ("(SELECT count({}) {})", "number"),
            )
        )
        a, b = make.full_key(relation, "k"), make.full_key(inner, "k")
        on = (Op("{} = {}", (a.expr, b.expr)),) if random.random() < 0.6 else ()
        return Col(Sub(form, (), (value.expr,), leaf, on), family, relation.rows)


def _columns(relation: Relation) -> dict[str, Col]:
    """The columns of a query by their names."""
    cols = [*(col for cols in relation.keys.values() for col in cols), *relation.values]
    return {col.expr.name: col for col in cols if isinstance(col.expr, Ref)}


def _only(relation: Relation, names: list[str]) -> Relation:
    values = tuple(c for c in relation.values if isinstance(c.expr, Ref) and c.expr.name in names)
    return replace(relation, values=values)


def kinds_of(query: Query) -> set[str]:
    """What is around the joins of a query, below and above."""
    found = {f"named query: {each.how}" for each in query.withs}
    for part in (query.body, *(each.select for each in query.withs)):
        found |= set(_kinds(part, below=part is not query.body))
    names = [leaf.source for leaf in _leaves(query) if isinstance(leaf.source, str)]
    if any(names.count(each.name) > 1 for each in query.withs):
        found.add("named query read twice")
    return found


def _kinds(part: Block, below: bool) -> Iterator[str]:
    """Names of all that a query has, with the place of each."""
    if isinstance(part, Both):
        yield from _placed(part.kind.lower(), part, below)
        yield from _kinds(part.left, below)
        yield from _kinds(part.right, below)
        return
    texts = [item.expr.form for item in part.items if isinstance(item.expr, Op)]
    has = {
        "aggregate": part.group is not None and not part.rollup,
        "rollup": part.rollup,
        "distinct": part.distinct,
        "limit": part.limit is not None,
        "sort": bool(part.order) and part.limit is None,
        "window": any(" OVER " in text for text in texts),
        "explode": "explode" in texts,
    }
    for name, is_there in has.items():
        if is_there:
            yield from _placed(name, part, below)
    for sub in _subs((*part.where, *(item.expr for item in part.items))):
        word = next(w for w in ("EXISTS", " IN ", "(SELECT") if w in sub.form)
        kind = {"EXISTS": "exists", " IN ": "in", "(SELECT": "scalar subquery"}[word]
        yield from _placed(kind, part, below)
        if not isinstance(sub.leaf.source, str):
            yield from _kinds(sub.leaf.source, below=True)
    for leaf in _leaves_of(part.source):
        if leaf.sample:
            yield "sample below"
        if not isinstance(leaf.source, str):
            if isinstance(part.source, Join) and has_join(leaf.source):
                yield "join above"
            yield from _kinds(leaf.source, below or isinstance(part.source, Join))


def _placed(kind: str, part: Block, below: bool) -> Iterator[str]:
    if below:
        yield f"{kind} below"
    if has_join(part):
        yield f"{kind} above"


def has_join(part: Block) -> bool:
    """Whether there is a join in it."""
    if isinstance(part, Both):
        return has_join(part.left) or has_join(part.right)
    if isinstance(part.source, Join):
        return True
    return not isinstance(part.source.source, str) and has_join(part.source.source)


def _subs(exprs: tuple[Expr, ...]) -> Iterator[Sub]:
    for expr in exprs:
        if isinstance(expr, Sub):
            yield expr
        elif isinstance(expr, Op):
            yield from _subs(expr.args)


def _leaves_of(source: Source) -> Iterator[Leaf]:
    if isinstance(source, Leaf):
        yield source
    else:
        yield from _leaves_of(source.left)
        yield from _leaves_of(source.right)


def _leaves(part: object) -> Iterator[Leaf]:
    if isinstance(part, Leaf):
        yield part
    if isinstance(part, tuple):
        for each in part:
            yield from _leaves(each)
    for each in getattr(part, "__dict__", {}).values():
        yield from _leaves(each)
