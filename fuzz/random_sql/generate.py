"""Random queries: chains and trees of joins, with what people put between and above them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from random_sql import functions, versions
from random_sql.columns import Col, Relation, bound
from random_sql.expressions import Expressions
from random_sql.scope import common_names, joined, scope_of, tables_of
from random_sql.surroundings import Surroundings
from random_sql.tables import Table
from random_sql.tree import (
    ANTI,
    CACHED,
    FULL,
    INNER,
    LEFT,
    RIGHT,
    SEMI,
    VIEW,
    WITH,
    Block,
    Expr,
    Join,
    Leaf,
    Op,
    Query,
    Select,
    Source,
    With,
    leaves,
)

#: More rows than this are not joined on.
MOST_ROWS = 600


@dataclass(frozen=True)
class Style:
    """What a query is like: some are such as we rewrite, others are anything."""

    kinds: tuple[str, ...]
    #: How often a join is on a key that all rows so far have, and on nothing else.
    plain: float
    #: How often an input is a query in parentheses.
    nested: float
    bushy: float
    using: float


_TECHNIQUES = (
    "auto",
    "adaptive",
    "'adaptive', 'threshold=100b', 'factor=1', 'slice_bytes=100b'",
    "broadcast",
    "broadcast_map",
    "'broadcast_map', 'side=left'",
    "'iterative_broadcast', 'chunks=2'",
    "'iterative_broadcast', 'chunks=2', 'passes=2', 'side=right'",
)

_MIXED = (FULL, FULL, FULL, LEFT, LEFT, RIGHT, INNER, SEMI, ANTI)
STYLES = (
    Style((FULL,), plain=1.0, nested=0.15, bushy=0.2, using=0.7),
    Style((FULL,), plain=0.9, nested=0.3, bushy=0.3, using=0.3),
    Style((FULL, FULL, LEFT, RIGHT, INNER, ANTI), plain=0.95, nested=0.2, bushy=0.3, using=0.5),
    Style(_MIXED, plain=0.85, nested=0.3, bushy=0.4, using=0.4),
    Style(_MIXED, plain=0.5, nested=0.3, bushy=0.4, using=0.2),
    # Joins in one stage, most of them with a condition on both sides.
    Style((INNER, LEFT, RIGHT, SEMI, SEMI, ANTI), plain=0.3, nested=0.1, bushy=0.2, using=0.1),
)


class Generator:
    """Makes queries over some tables."""

    def __init__(self, random: Random, tables: Sequence[Table], asof: float = 0.0) -> None:
        self._random = random
        self._all_tables = tables
        #: The tables of a query.
        self._tables = tables
        #: The share of queries that read an as-of join or latest rows.
        self._asof = asof
        #: A named query that the next leaf reads.
        self._wanted: str | None = None
        self._aliases = 0
        self._named: dict[str, Relation] = {}
        self._withs: list[With] = []
        self._style = STYLES[0]
        self._usual: list[str] = []
        self._names = {table.name: tuple(c.name for c in table.columns) for table in tables}
        self._expressions = Expressions(random)
        self._surroundings = Surroundings(random, self._expressions)

    def query(self) -> Query:
        """One more query; it has names of its own."""
        random = self._random
        self._aliases, self._named, self._withs = 0, {}, []
        self._style = random.choice(STYLES)
        # Of two tables most joins are of a table with itself, or with a chain that has read it.
        few = random.random() < 0.15
        self._tables = random.sample(self._all_tables, 2) if few else self._all_tables
        # Most queries join by one key; the others by another one each time.
        self._usual = random.choice((["k"], ["k"], ["k"], ["k", "j"], []))
        joins = random.choice((1, 2, 2, 2, 3, 3, 3, 4, 5, 7))
        reads_versions = random.random() < self._asof
        for number in range(max(reads_versions, random.choice((0, 0, 0, 1, 2)))):
            part = random.randint(0, min(2, joins - 1))
            joins = max(1, joins - part)
            name = f"w{number}"
            if number == 0 and reads_versions:
                called, relation = versions.make(random, self._tables, name)
            elif random.random() < 0.25:
                called, relation = functions.make(random, self._all_tables, name)
            else:
                called, relation = self._named_query(name, part)
            self._withs.append(called)
            self._named[name] = relation
            self._names[name] = tuple(item.name for item in called.select.items)
        self._wanted = "w0" if reads_versions else None
        body, relation = self._select(joins, depth=2, top=True)
        around: Block = body
        if random.random() < 0.25:
            around, _ = self._surroundings.around(
                body, relation, functools.partial(self._source, depth=0)
            )
        return Query(around, tuple(self._withs))

    def _named_query(self, name: str, joins: int) -> tuple[With, Relation]:
        block, relation = self._select(joins, depth=0)
        # A view cannot read what WITH has named.
        read = tables_of(Query(block))
        allowed = all(each.view for each in self._withs if each.name in read)
        how = self._random.choice((WITH, WITH, WITH, VIEW, *CACHED)) if allowed else WITH
        return With(name, block, how), relation

    # Relations

    def _select(self, joins: int, depth: int, top: bool = False) -> tuple[Select, Relation]:
        """A block with that many joins, in parts of it too, and what it gives."""
        random = self._random
        source, relation = self._source(joins, depth)
        where = [
            self._expressions.predicate(relation)
            for _ in range(random.choice((0, 0, 0, 0, 1, 1, 2)))
        ]
        if depth and random.random() < 0.1:
            where.append(self._surroundings.predicate(relation, *self._inner()))
        style = random.choice(("plain",) * 6 + ("group", "group", "distinct"))
        if style == "group":
            items, group, given = self._expressions.aggregated(relation, top)
        else:
            extra = []
            if depth and style == "plain" and random.random() < 0.05:
                extra = [self._surroundings.scalar(relation, *self._inner())]
            items, given = self._expressions.projected(relation, top, style == "distinct", extra)
            group = None
        hint = ""
        if random.random() < 0.02:
            alias = f"r{random.randint(1, self._aliases)}"
            hint = f"{random.choice(('MERGE', 'SHUFFLE_HASH', 'BROADCAST'))}({alias})"
        if random.random() < 0.06:
            hint = self._technique(source)
        rollup = bool(group) and random.random() < 0.1
        block = Select(items, source, tuple(where), group, style == "distinct", hint, rollup)
        return block, given

    def _technique(self, source: Source) -> str:
        """A hint that says how a relation is joined; where it cannot be, the join is Spark's."""
        random = self._random
        alias = random.choice([leaf.alias for leaf in leaves(source)])
        techniques = list(_TECHNIQUES)
        if self._usual == ["k"] and self._tables[0].columns[0].kind.family == "number":
            techniques += ["'salted', 'hot_keys=1,2'", "'salted', 'hot_keys=7', 'salts=3'"]
        return f"SKEWEXT_JOIN({alias}, {random.choice(techniques)})"

    def _source(self, joins: int, depth: int) -> tuple[Source, Relation]:
        random = self._random
        if joins == 0:
            return self._leaf(depth, 0)
        if depth and random.random() < self._style.nested:
            # A query in parentheses on the left, as people write a chain step by step.
            inner = random.randint(0, joins - 1)
            left = self._leaf(depth, inner)
        elif random.random() < self._style.bushy:
            inner = random.randint(0, joins - 1)
            left = self._source(inner, depth)
        else:
            inner = joins - 1
            left = self._source(inner, depth)
        right = self._source(joins - 1 - inner, depth)
        return self._join(left, right)

    def _leaf(self, depth: int, joins: int) -> tuple[Source, Relation]:
        random = self._random
        alias = self._alias()
        if joins or (depth and random.random() < 0.15):
            inner, given = self._select(joins, depth - 1)
            block: Block = inner
            if random.random() < (0.15 if joins else 0.6):
                make = functools.partial(self._source, depth=0)
                block, given = self._surroundings.around(inner, given, make)
            return Leaf(alias, block), given.known_as(alias)
        sample = random.random() < 0.02
        if self._named and (self._wanted or random.random() < 0.4):
            name = self._wanted or random.choice(list(self._named))
            self._wanted = None
            return Leaf(alias, name, sample), self._named[name].known_as(alias)
        table = random.choice(self._tables)
        return Leaf(alias, table.name, sample), Relation.of(table).known_as(alias)

    def _alias(self) -> str:
        self._aliases += 1
        return f"r{self._aliases}"

    # Joins

    def _join(
        self, one: tuple[Source, Relation], other: tuple[Source, Relation]
    ) -> tuple[Source, Relation]:
        """The join of both, of a kind that does not give too many rows."""
        random = self._random
        (left, ours), (right, theirs) = one, other
        kind = random.choice(self._style.kinds)
        for attempt in range(4):
            if attempt == 2:
                # One row of each key does not multiply anything.
                right, theirs = self._unique_leaf()
            join, pairs = self._conditioned(kind, left, ours, right, theirs)
            given = bound(join, ours, theirs, pairs)
            if given.rows <= MOST_ROWS:
                return join, self._seen(join, left, right, given)
        # A condition of its own: in these, DuckDB does not know the columns of USING.
        join, pairs = self._conditioned(random.choice((SEMI, ANTI)), left, ours, right, theirs)
        return join, self._seen(join, left, right, bound(join, ours, theirs, pairs))

    def _seen(self, join: Join, left: Source, right: Source, given: Relation) -> Relation:
        scope = joined(join, scope_of(left, self._names), scope_of(right, self._names))
        return given.visible(scope.known)

    def _unique_leaf(self) -> tuple[Source, Relation]:
        few = [t for t in self._all_tables if t.repeats(0) <= 1] or list(self._all_tables)
        table = self._random.choice(few)
        alias = self._alias()
        return Leaf(alias, table.name), Relation.of(table).known_as(alias)

    def _conditioned(
        self, kind: str, left: Source, ours: Relation, right: Source, theirs: Relation
    ) -> tuple[Join, list[tuple[Col, Col]]]:
        random = self._random
        names = self._key_names(ours, theirs)
        # DuckDB mistakes what USING of a semi join means for the joins after it.
        if kind not in (SEMI, ANTI) and random.random() < self._style.using:
            by_name = self._using(kind, left, ours, right, theirs, names)
            if by_name:
                return by_name
        plain = random.random() < self._style.plain
        pairs = [self._pair(ours, theirs, name, plain) for name in names]
        if len(names) == 2 and random.random() < 0.3:
            pairs.reverse()
        on: list[Expr] = []
        for a, b in pairs:
            operands = (a.expr, b.expr) if random.random() < 0.7 else (b.expr, a.expr)
            on.append(Op("{} = {}", operands))
        if not plain:
            pairs = self._spoiled(kind, ours, theirs, on, pairs)
        return Join(kind, left, right, on=tuple(on)), pairs

    def _spoiled(
        self,
        kind: str,
        ours: Relation,
        theirs: Relation,
        on: list[Expr],
        pairs: list[tuple[Col, Col]],
    ) -> list[tuple[Col, Col]]:
        """Make the condition one that is not only about equal keys."""
        random = self._random
        ours, theirs = ours.qualified(), theirs.qualified()
        choice = random.choice((0, 1, 2, 2, 2, 3, 4, 5, 6))
        (a, b), *others = pairs
        if choice == 0:
            on.append(on[0])
        elif choice == 1:
            side = ours if random.random() < 0.5 else theirs
            on.append(self._expressions.predicate(side))
        elif choice == 2:
            on.append(self._expressions.comparison(ours, theirs))
        elif choice == 3:
            on[0] = Op("same", (a.expr, b.expr))
            return [(a.with_nulls(ours), b.with_nulls(theirs)), *others]
        elif choice == 4:
            function = self._expressions.function(a.family)
            on[0] = Op("{} = {}", (Op(function, (a.expr,)), Op(function, (b.expr,))))
            return [(a.repeated(ours.rows), b.repeated(theirs.rows)), *others]
        return pairs

    def _using(
        self,
        kind: str,
        left: Source,
        ours: Relation,
        right: Source,
        theirs: Relation,
        names: Sequence[str],
    ) -> tuple[Join, list[tuple[Col, Col]]] | None:
        here, there = scope_of(left, self._names), scope_of(right, self._names)
        if not all(here.shared(name) and there.shared(name) for name in names):
            return None
        pairs = [(ours.shown(here, name), theirs.shown(there, name)) for name in names]
        if any(a.family != b.family for a, b in pairs):
            return None
        join = Join(kind, left, right, using=tuple(names))
        allowed = kind in (FULL, LEFT, INNER) and set(common_names(here, there) or ()) == set(names)
        if allowed and self._random.random() < 0.5:
            join = replace(join, using=common_names(here, there) or (), natural=True)
        return join, pairs

    def _key_names(self, ours: Relation, theirs: Relation) -> list[str]:
        both = [name for name in ("k", "j") if name in ours.keys and name in theirs.keys]
        random = self._random
        if len(both) == 2:
            return self._usual or random.choice((["k"], ["k"], ["k", "j"], ["j"]))
        return both or ["k"]

    def _pair(self, ours: Relation, theirs: Relation, name: str, plain: bool) -> tuple[Col, Col]:
        random = self._random
        # A name alone would mean the key of either side.
        ours, theirs = ours.qualified(), theirs.qualified()
        make = self._expressions
        if plain or random.random() < 0.4:
            return make.full_key(ours, name), make.full_key(theirs, name)
        return make.some_key(ours, name), make.some_key(theirs, name)

    def _inner(self) -> tuple[Leaf, Relation]:
        """The relation of a subquery."""
        leaf, inner = self._leaf(1, self._random.choice((0, 0, 1)))
        assert isinstance(leaf, Leaf)
        return leaf, inner
