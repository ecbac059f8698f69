"""As-of joins and latest rows: calls of the functions, and the plain SQL that means the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyspark_skewext import asof, asof_join, latest
from random_sql.columns import Col, Keys, Relation
from random_sql.tables import Column, Table, is_raw
from random_sql.tree import (
    CACHED,
    FUNCTION,
    INNER,
    LEFT,
    VIEW,
    WITH,
    Expr,
    Item,
    Join,
    Leaf,
    Op,
    Ref,
    Select,
    With,
)

#: Gives a table by its name.
Read = Callable[[str], DataFrame]

BACKWARD, FORWARD, NEAREST = "backward", "forward", "nearest"
#: What a version that may match has: the time of the version first, then that of the spine.
_COMPARED = {(BACKWARD, True): "<=", (BACKWARD, False): "<"}
_COMPARED.update({(FORWARD, True): ">=", (FORWARD, False): ">"})
_LAST = {BACKWARD: "max({})", FORWARD: "min({})"}
_BETWEEN = "abs(CAST({} AS BIGINT) - CAST({} AS BIGINT)) <= %d"
#: The closer one of the version before and the version after a time, which is the last argument.
_CLOSER = (
    "CASE WHEN {0} IS NULL THEN {1} WHEN {1} IS NULL THEN {0} "
    "WHEN CAST({2} AS BIGINT) - {0} <= {1} - CAST({2} AS BIGINT) THEN {0} ELSE {1} END"
)
_FIRST = "row_number() OVER (PARTITION BY %s ORDER BY %s)"


@dataclass(frozen=True)
class Versions:
    """A table of versions, the columns that are read, and how one of its rows matches."""

    table: str
    time: str
    value: str
    direction: str = BACKWARD
    exact: bool = True
    within: int | None = None


@dataclass(frozen=True)
class AsOfJoin:
    """A call of `asof_join`."""

    spine: str
    on: tuple[str, ...]
    time: str
    shown: tuple[str, ...]
    versions: tuple[Versions, ...]
    how: str

    def select(self) -> Select:
        """The last time of each pair of key and time in the spine, and its greatest value."""
        source: Leaf | Join = Leaf("f", self.spine)
        items = [Item(name, Ref("f", name)) for name in (*self.on, self.time, *self.shown)]
        for number, each in enumerate(self.versions):
            times, values = f"b{number}", f"a{number}"
            at = [_equal("f", times, name, name) for name in (*self.on, self.time)]
            source = Join(self.how, source, Leaf(times, self._times(each)), on=tuple(at))
            then = [_equal(times, values, name, name) for name in (*self.on, "then_")]
            greatest = _greatest(each, self.on)
            source = Join(LEFT, source, Leaf(values, greatest), on=tuple(then))
            items.append(Item(f"{each.time}_{number}", Ref(times, "then_")))
            items.append(Item(f"{each.value}_{number}", Ref(values, "value_")))
        return Select(tuple(items), source)

    def _times(self, each: Versions) -> Select:
        """The time that matches, by key and time of the spine."""
        names = (*self.on, self.time)
        spine = Select(
            tuple(Item(name, Ref("s", name)) for name in names),
            Leaf("s", self.spine),
            distinct=True,
        )
        at, then = Ref("p", self.time), Ref("v", each.time)
        on: list[Expr] = [_equal("p", "v", name, name) for name in self.on]
        if each.within is not None:
            on.append(Op(_BETWEEN % each.within, (then, at)))
        if each.direction == NEAREST:
            best = Op(_CLOSER, (*(_best(way, each.exact, then, at) for way in _LAST), at))
            on.append(Op("{} IS NOT NULL", (then,)) if each.exact else Op("{} <> {}", (then, at)))
        else:
            on.append(Op(f"{{}} {_COMPARED[each.direction, each.exact]} {{}}", (then, at)))
            best = Op(_LAST[each.direction], (then,))
        pairs = Join(INNER, Leaf("p", spine), Leaf("v", each.table), on=tuple(on))
        group = tuple(Ref("p", name) for name in names)
        items = (*(Item(ref.name, ref) for ref in group), Item("then_", best))
        return Select(items, pairs, group=group)

    def frame(self, read: Read) -> DataFrame:
        """The same by the function."""
        tables = []
        for number, each in enumerate(self.versions):
            table = read(each.table)
            names = {c: c if c in self.on else f"{c}_{number}" for c in table.columns}
            tables.append(
                asof(
                    table.select(*(sf.col(old).alias(new) for old, new in names.items())),
                    time=names[each.time],
                    direction=each.direction,
                    allow_exact_matches=each.exact,
                    tolerance=each.within,
                    ties=names[each.value],
                )
            )
        how = self.how.lower()
        return asof_join(read(self.spine), *tables, on=list(self.on), time=self.time, how=how)

    def __str__(self) -> str:
        ways = sorted({each.direction for each in self.versions})
        return f"asof_join, {self.how.lower()}, {', '.join(ways)}"


@dataclass(frozen=True)
class LatestRows:
    """A call of `latest`."""

    of: Versions
    on: tuple[str, ...]

    def select(self) -> Select:
        """The last time of each key and its greatest value; null is a key and the first time."""
        each = self.of
        group = tuple(Ref("v", name) for name in self.on)
        last = Op("max({})", (Ref("v", each.time),))
        items = (*(Item(ref.name, ref) for ref in group), Item("then_", last))
        times = Select(items, Leaf("v", each.table), group=group)
        names = (*self.on, "then_")
        same = tuple(Op("same", (Ref("b", name), Ref("a", name))) for name in names)
        source = Join(INNER, Leaf("b", times), Leaf("a", _greatest(each, self.on)), on=same)
        shown = (*(Item(name, Ref("b", name)) for name in self.on),)
        values = (Item(each.time, Ref("b", "then_")), Item(each.value, Ref("a", "value_")))
        return Select((*shown, *values), source)

    def frame(self, read: Read) -> DataFrame:
        """The same by the function."""
        table = read(self.of.table)
        return latest(table, on=list(self.on), by=self.of.time, ties=self.of.value)

    def __str__(self) -> str:
        return "latest"


def make(random: Random, tables: Sequence[Table], name: str) -> tuple[With, Relation]:
    """A named query that joins as of a time, or has the latest row of each key."""
    choice = random.random()
    if choice < 0.6:
        join, relation = _join(random, tables)
        return With(name, join.select(), FUNCTION, versions=join), relation
    rows, relation = _latest(random, random.choice(tables))
    if choice < 0.75:
        return With(name, rows.select(), FUNCTION, versions=rows), relation
    how = random.choice((WITH, WITH, VIEW, *CACHED))
    return With(name, _first_rows(rows), how), relation


def call(each: With, read: Read) -> tuple[DataFrame | None, str]:
    """The DataFrame of the function and its name, if the query still means the call."""
    made = each.versions
    assert isinstance(made, (AsOfJoin, LatestRows)) and isinstance(each.select, Select)
    whole = made.select()
    is_part = set(each.select.items) <= set(whole.items)
    if not is_part or replace(whole, items=each.select.items) != each.select:
        return None, ""
    frame = made.frame(read)
    # Aliases, as SQL has them: stock Spark mistakes columns of a table that is joined with itself.
    shown = (sf.col(item.name).alias(item.name) for item in each.select.items)
    return frame.select(*shown), str(made)


def _join(random: Random, tables: Sequence[Table]) -> tuple[AsOfJoin, Relation]:
    spine = random.choice(tables)
    on = random.choice((("k",), ("k",), ("k", "j")))
    by_value = len(on) == 2 or random.random() < 0.7
    others = [c for c in spine.columns if c.name not in ("k", "j")]
    time = others[0] if by_value else spine.columns[1]
    versions = []
    for _ in range(random.choice((1, 1, 2, 2, 3, 4))):
        table = random.choice(tables)
        # The first column that is no key is a number, as the spine's is.
        then = table.columns[2 if by_value else 1]
        value = random.choice(_values(table, (*on, then.name)))
        is_number = time.kind.family == "number"
        ways = (BACKWARD, BACKWARD, FORWARD, NEAREST) if is_number else (BACKWARD, FORWARD)
        within = random.choice((None, None, 0, 1, 3)) if is_number else None
        exact = random.random() < 0.7
        way = random.choice(ways)
        versions.append(Versions(table.name, then.name, value.name, way, exact, within))
    shown = [c.name for c in others if c != time and random.random() < 0.5]
    how = random.choice((LEFT, LEFT, INNER))
    join = AsOfJoin(spine.name, on, time.name, tuple(shown), tuple(versions), how)
    return join, _relation(join.select(), tables, spine, join.versions)


def _latest(random: Random, table: Table) -> tuple[LatestRows, Relation]:
    on = random.choice((("k",), ("k",), ("k", "j")))
    time = random.choice(_values(table, on)).name
    value = random.choice(_values(table, (*on, time))).name
    rows = LatestRows(Versions(table.name, time, value), on)
    return rows, _relation(rows.select(), [table], table, ())


def _values(table: Table, taken: Sequence[str]) -> list[Column]:
    return [c for c in table.columns if c.name not in taken and not is_raw(c.kind.family)]


def _first_rows(rows: LatestRows) -> Select:
    """The same as people write it."""
    each = rows.of
    names = (*rows.on, each.time, each.value)
    order = ", ".join(f"{{{len(rows.on) + i}}} DESC NULLS LAST" for i in range(2))
    number = _FIRST % (", ".join(f"{{{i}}}" for i in range(len(rows.on))), order)
    items = [Item(name, Ref("v", name)) for name in names]
    items.append(Item("place_", Op(number, tuple(item.expr for item in items))))
    numbered = Select(tuple(items), Leaf("v", each.table))
    first = Op("{} = 1", (Ref("n", "place_"),))
    return Select(tuple(Item(n, Ref("n", n)) for n in names), Leaf("n", numbered), (first,))


def _relation(
    select: Select, tables: Sequence[Table], spine: Table, versions: Sequence[Versions]
) -> Relation:
    """What such a query gives: a row of the spine at most once."""
    kinds = {(t.name, c.name): c.kind.family for t in tables for c in t.columns}
    families = {name: kinds[spine.name, name] for name in spine.names}
    for number, each in enumerate(versions):
        families[f"{each.time}_{number}"] = kinds[each.table, each.time]
        families[f"{each.value}_{number}"] = kinds[each.table, each.value]
    rows = len(spine.rows)
    cols = {i.name: Col(Ref(None, i.name), families[i.name], rows) for i in select.items}
    keys: Keys = {"k": (replace(cols["k"], repeats=spine.repeats(spine.names.index("k"))),)}
    if "j" in cols:
        keys["j"] = (cols["j"],)
    return Relation(rows, keys, tuple(col for name, col in cols.items() if name not in keys))


def _greatest(each: Versions, on: Sequence[str]) -> Select:
    """The greatest value of each key and time."""
    group = tuple(Ref("v", name) for name in (*on, each.time))
    items = [Item(ref.name, ref) for ref in group[:-1]]
    items += [Item("then_", group[-1]), Item("value_", Op("max({})", (Ref("v", each.value),)))]
    return Select(tuple(items), Leaf("v", each.table), group=group)


def _best(way: str, exact: bool, then: Ref, at: Ref) -> Op:
    """The last time before, or the first one after."""
    form = f"CASE WHEN {{0}} {_COMPARED[way, exact]} {{1}} THEN {{0}} END"
    return Op(_LAST[way], (Op(form, (then, at)),))


def _equal(left: str, right: str, ours: str, theirs: str) -> Op:
    return Op("{} = {}", (Ref(left, ours), Ref(right, theirs)))
