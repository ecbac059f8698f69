"""What is known of the columns of a relation while a query is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from random_sql.scope import Scope
from random_sql.tables import Table
from random_sql.tree import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, Expr, Join, Op, Ref, coalesce


@dataclass(frozen=True)
class Col:
    """An expression, the family of its type, and how many rows have one of its values at most."""

    expr: Expr
    family: str
    repeats: int
    nullable: bool = True

    def with_nulls(self, relation: Relation) -> Col:
        """The same where null equals null."""
        return self.repeated(relation.rows)

    def repeated(self, rows: int) -> Col:
        """The same with more rows of a value."""
        return replace(self, repeats=rows)


#: For each name of a key, columns of which the first that is not null is the key of the row.
Keys = dict[str, tuple[Col, ...]]


@dataclass(frozen=True)
class Relation:
    """The columns of a relation: its keys by name, and all others."""

    rows: int
    keys: Keys
    values: tuple[Col, ...]
    #: All columns that are, or were, a key of an input.
    own_keys: tuple[Col, ...] = ()
    #: Those that USING made.
    merged: dict[str, Col] = field(default_factory=dict)

    @staticmethod
    def of(table: Table) -> Relation:
        """The columns of a table, without an alias."""
        keys: Keys = {}
        values: list[Col] = []
        for place, column in enumerate(table.columns):
            family, repeats = column.kind.family, table.repeats(place)
            col = Col(Ref(None, column.name), family, repeats, column.nullable)
            if column.name in ("k", "j"):
                keys[column.name] = (col,)
            else:
                values.append(col)
        return Relation(len(table.rows), keys, tuple(values))

    def known_as(self, alias: str) -> Relation:
        """As a leaf of that name; its columns are plain references then."""

        def named(col: Col) -> Col:
            assert isinstance(col.expr, Ref)
            return replace(col, expr=Ref(alias, col.expr.name))

        keys = {name: tuple(map(named, cols)) for name, cols in self.keys.items()}
        own = tuple(col for cols in keys.values() for col in cols)
        return Relation(self.rows, keys, tuple(map(named, self.values)), own)

    def visible(self, known: Iterable[Ref]) -> Relation:
        """Only what can still be named."""
        kept = set(known)
        merged = {name: col for name, col in self.merged.items() if col.expr in kept}
        return replace(self, merged=merged)

    def qualified(self) -> Relation:
        """Without the columns that are named without an alias."""
        return replace(self, merged={})

    def shown(self, scope: Scope, name: str) -> Col:
        """The one column that has this name."""
        (ref,) = (ref for ref in scope.shown if ref.name == name)
        if ref.alias is None:
            return self.merged[name]
        for col in (*self.own_keys, *self.values):
            if col.expr == ref:
                return col
        raise AssertionError(f"there is no {ref}")

    def full(self, name: str) -> Col:
        """The key of the row, whichever input it came from."""
        parts = self.keys[name]
        if len(parts) == 1:
            return parts[0]
        repeats = min(self.rows, sum(part.repeats for part in parts))
        return Col(coalesce(*(p.expr for p in parts)), parts[0].family, repeats)


def bound(
    join: Join, ours: Relation, theirs: Relation, pairs: Sequence[tuple[Col, Col]]
) -> Relation:
    """What a join gives at most, and where its keys are."""
    # So many rows of the other side a row meets.
    there = min((b.repeats for _, b in pairs), default=theirs.rows)
    here = min((a.repeats for a, _ in pairs), default=ours.rows)
    if join.kind in (SEMI, ANTI):
        # What USING shows is the left column.
        merged = {n: c for n, c in ours.merged.items() if n not in join.using}
        merged.update({n: _renamed(ours_of(ours, n, pairs, join), n) for n in join.using})
        return replace(ours, merged=merged)
    inner = ours.rows * there
    rows = {
        FULL: inner + theirs.rows + ours.rows,
        LEFT: inner + ours.rows,
        RIGHT: inner + theirs.rows,
        INNER: inner,
    }[join.kind]

    def grown(cols: Iterable[Col], times: int, optional: bool) -> tuple[Col, ...]:
        factor = max(1, times)
        return tuple(
            replace(
                col,
                repeats=min(rows, col.repeats * factor),
                nullable=col.nullable or optional,
            )
            for col in cols
        )

    left_optional, right_optional = join.kind in (FULL, RIGHT), join.kind in (FULL, LEFT)
    keys: Keys = {}
    for name in {**ours.keys, **theirs.keys}:
        a = grown(ours.keys.get(name, ()), there, left_optional)
        b = grown(theirs.keys.get(name, ()), here, right_optional)
        keys[name] = {FULL: a + b, LEFT: a or b, RIGHT: b or a, INNER: a or b}[join.kind]
    own = grown(ours.own_keys, there, left_optional) + grown(theirs.own_keys, here, right_optional)
    values = grown(ours.values, there, left_optional) + grown(theirs.values, here, right_optional)
    merged = {**ours.merged, **theirs.merged}
    merged = dict(zip(merged, grown(merged.values(), max(here, there), True)))
    for name, (left, right) in zip(join.using, pairs):
        repeats = min(rows, left.repeats * max(1, there) + right.repeats)
        merged[name] = Col(Ref(None, name), left.family, repeats)
    return Relation(rows, keys, values, own, merged)


def ours_of(ours: Relation, name: str, pairs: Sequence[tuple[Col, Col]], join: Join) -> Col:
    """The left column of a USING."""
    return pairs[join.using.index(name)][0]


def _renamed(col: Col, name: str) -> Col:
    return replace(col, expr=Ref(None, name))


def call(form: str, family: str, repeats: int, *args: Expr) -> Col:
    """A column made of others."""
    return Col(Op(form, args), family, repeats)
