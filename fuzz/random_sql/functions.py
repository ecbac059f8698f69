"""Joins by the functions of Python, made from a chain of joins that means the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyspark_skewext import (
    Adaptive,
    Auto,
    Broadcast,
    BroadcastMap,
    IterativeBroadcast,
    Salted,
    Technique,
    multi_full_join,
    multi_join,
    skew_join,
)
from random_sql import versions
from random_sql.columns import Col, Relation, bound
from random_sql.tables import Table
from random_sql.tree import (
    ANTI,
    FULL,
    FUNCTION,
    INNER,
    LEFT,
    RIGHT,
    SEMI,
    Block,
    Expr,
    Item,
    Join,
    Leaf,
    Op,
    Ref,
    Select,
    Source,
    With,
    leaves,
)
from random_sql.versions import Read

#: The techniques of `skew_join`, by their names.
TECHNIQUES: dict[str, Technique] = {
    each.name: each
    for each in (
        Auto(),
        Technique(),
        Adaptive(threshold="100b", factor=1.0, slice_bytes="100b"),
        Broadcast(),
        BroadcastMap(),
        IterativeBroadcast(chunks=2),
        Salted(salts=3),
    )
}

_NOT_NULL, _NULL = "{} IS NOT NULL", "{} IS NULL"
#: More rows than this are not made.
_MOST_ROWS = 600


def make(random: Random, tables: Sequence[Table], name: str) -> tuple[With, Relation]:
    """A named query that is a call of one of the functions."""
    if random.random() < 0.3:
        return versions.make(random, tables, name)
    on = random.choice((("k",), ("k",), ("k", "j")))
    kind = random.choice((FULL, FULL, LEFT, INNER))
    count = random.choice((2, 2, 3, 3, 4, 5))
    technique = ""
    if count == 2 and random.random() < 0.8:
        technique = random.choice(list(TECHNIQUES))
        kind = random.choice((FULL, LEFT, RIGHT, INNER, SEMI, ANTI))
    source, relation, used = _chain(random.sample(list(tables), count), on, kind)
    while relation.rows > _MOST_ROWS:
        count = 2
        source, relation, used = _chain(random.sample(list(tables), count), on, kind)
    where = () if technique or kind != FULL else _roles(random, used)
    gone = {each.args[0].alias for each in where if each.form == _NULL}  # type: ignore[union-attr]
    shown = [col for col in relation.values if _alias(col) not in gone]
    keys = {each: _merged(relation, each) for each in on}
    values = random.sample(shown, min(len(shown), random.randint(1, 4)))
    items = [Item(each, col.expr) for each, col in keys.items()]
    items += [Item(col.expr.name, col.expr) for col in values if isinstance(col.expr, Ref)]
    block = Select(tuple(items), source, where)
    given = Relation(
        relation.rows,
        {each: (Col(Ref(None, each), col.family, col.repeats),) for each, col in keys.items()},
        tuple(
            Col(Ref(None, col.expr.name), col.family, col.repeats)
            for col in values
            if isinstance(col.expr, Ref)
        ),
    )
    return With(name, block, FUNCTION, technique, broadcast=_hinted(block, count)), given


def _hinted(block: Block, inputs: int) -> tuple[int, ...]:
    """The inputs that have a broadcast hint; one in ten, by chance that no other part shares."""
    random = Random(str(block))
    return tuple(each for each in range(inputs) if random.random() < 0.1)


def _chain(
    tables: Sequence[Table], on: tuple[str, ...], kind: str
) -> tuple[Source, Relation, list[tuple[str, Table]]]:
    """The join of as many of the tables as do not give too many rows."""
    used = [("f0", tables[0])]
    source: Source = Leaf("f0", tables[0].name)
    relation = Relation.of(tables[0]).known_as("f0")
    for number, table in enumerate(tables[1:], 1):
        alias = f"f{number}"
        theirs = Relation.of(table).known_as(alias)
        join = Join(kind, source, Leaf(alias, table.name), using=on)
        pairs = [(_merged(relation, each), _merged(theirs, each)) for each in on]
        given = bound(join, relation, theirs, pairs)
        if given.rows > _MOST_ROWS and kind not in (SEMI, ANTI) and number > 1:
            continue
        source, relation = join, given
        used.append((alias, table))
    return source, relation, used


def _merged(relation: Relation, name: str) -> Col:
    return relation.merged[name] if name in relation.merged else relation.keys[name][0]


def _alias(col: Col) -> str | None:
    return col.expr.alias if isinstance(col.expr, Ref) else None


def _roles(random: Random, used: Sequence[tuple[str, Table]]) -> tuple[Op, ...]:
    """Conditions that make inputs of full outer joins required or excluded."""
    if random.random() < 0.5:
        return ()
    found = []
    for alias, table in used[1:]:
        form = random.choice((None, None, _NOT_NULL, _NULL))
        (column,) = (c.name for c in table.columns if c.name.startswith("n"))
        found += [Op(form, (Ref(alias, column),))] if form else []
    return tuple(found)


def takes_several_sessions(spark: SparkSession) -> bool:
    """Whether inputs may be of several sessions, as those of Spark's own join may."""
    try:
        multi_full_join(spark.range(1), spark.newSession().range(1), on="id")
    except PySparkException:
        return False
    return True


def call(each: With, table: Read) -> tuple[DataFrame | None, str]:
    """The DataFrame of the function, if the query is a chain for one, and the function's name."""
    if each.versions is not None:
        return versions.call(each, table)
    parts = _parts(each.select)
    if parts is None:
        return None, ""
    select, on, kind, inputs = parts
    roles = _roles_of(select.where, inputs)
    if roles is None or (select.where and kind != FULL):
        return None, ""
    if each.technique and len(inputs) == 2 and not select.where:
        return _two(table, select, on, kind, inputs, each.technique)
    if kind not in (FULL, LEFT, INNER):
        return None, ""
    frames = [table(str(leaf.source)) for leaf in inputs]
    frames = [sf.broadcast(f) if i in each.broadcast else f for i, f in enumerate(frames)]
    suffixes = [f"_{leaf.alias}" for leaf in inputs]
    if select.where:
        joined = multi_join(*frames, on=list(on), how=roles, suffixes=suffixes)
        name = "multi_join, roles"
    elif kind == FULL:
        joined = multi_full_join(*frames, on=list(on), suffixes=suffixes)
        name = "multi_full_join"
    else:
        joined = multi_join(*frames, on=list(on), how=kind.lower(), suffixes=suffixes)
        name = f"multi_join, {kind.lower()}"
    name += ", hints" if set(each.broadcast).intersection(range(len(inputs))) else ""
    given = [f for f, role in zip(frames, roles) if role != "excluded"]
    times = Counter(c for frame in given for c in frame.columns)
    shown = {
        (leaf.alias, c): f"{c}_{leaf.alias}" if times[c] > 1 else c
        for leaf, frame in zip(inputs, frames)
        for c in frame.columns
    }
    return _shown(joined, select, shown), name


def _two(
    table: Read,
    select: Select,
    on: tuple[str, ...],
    kind: str,
    inputs: Sequence[Leaf],
    technique: str,
) -> tuple[DataFrame | None, str]:
    sides, shown = [], {}
    for leaf in inputs:
        frame = table(str(leaf.source))
        named = {c: c if c in on else f"{c}_{leaf.alias}" for c in frame.columns}
        sides.append(frame.select(*(sf.col(c).alias(new) for c, new in named.items())))
        shown.update({(leaf.alias, c): new for c, new in named.items()})
    how = kind.lower()
    name = f"skew_join, {technique}, {how}"
    try:
        left, right = sides
        joined = skew_join(left, right, on=list(on), how=how, technique=TECHNIQUES[technique])
    except AnalysisException as error:
        # Some techniques are not for each kind of join.
        return None, f"{name}: refused ({str(error).splitlines()[0][:70]})"
    return _shown(joined, select, shown), name


def _shown(joined: DataFrame, select: Select, names: dict[tuple[str, str], str]) -> DataFrame:
    columns = []
    for item in select.items:
        assert isinstance(item.expr, Ref)
        alias, name = item.expr.alias, item.expr.name
        columns.append(sf.col(name if alias is None else names[alias, name]).alias(item.name))
    return joined.select(*columns)


def _parts(block: Block) -> tuple[Select, tuple[str, ...], str, list[Leaf]] | None:
    """The query, its key, the kind of its joins and its inputs, if it is a plain chain."""
    if not isinstance(block, Select) or not isinstance(block.source, Join):
        return None
    plain = _is_plain(block)
    inputs = list(leaves(block.source))
    on, kind = block.source.using, block.source.kind
    source: Source = block.source
    while isinstance(source, Join):
        if (source.using, source.kind) != (on, kind) or isinstance(source.right, Join):
            return None
        source = source.left
    known = all(isinstance(leaf.source, str) and not leaf.sample for leaf in inputs)
    refs = all(_is_shown(item.expr, on) for item in block.items)
    return (block, on, kind, inputs) if plain and known and refs and on else None


def _is_plain(block: Select) -> bool:
    """Whether a query has nothing but columns, joins and conditions."""
    others = (block.group, block.order, block.limit, block.hint)
    return not block.distinct and others == (None, (), None, "")


def _is_shown(expr: Expr, on: tuple[str, ...]) -> bool:
    if not isinstance(expr, Ref):
        return False
    return expr.name in on if expr.alias is None else expr.name not in on


def _roles_of(where: tuple[Expr, ...], inputs: Sequence[Leaf]) -> list[str] | None:
    """The role of each input; None if a condition is about anything else."""
    roles = {leaf.alias: "optional" for leaf in inputs}
    for each in where:
        if not isinstance(each, Op) or each.form not in (_NOT_NULL, _NULL):
            return None
        (arg,) = each.args
        if not isinstance(arg, Ref) or not arg.name.startswith("n") or arg.alias not in roles:
            return None
        if roles[arg.alias] != "optional":
            return None
        roles[arg.alias] = "required" if each.form == _NOT_NULL else "excluded"
    return [roles[leaf.alias] for leaf in inputs]
