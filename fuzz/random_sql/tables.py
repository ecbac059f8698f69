"""Small random tables: types of keys, rows with nulls and duplicates, and their sources."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

from random_sql.decks import Deck
from random_sql.forms import CACHES, FORMS, IN_FILES, MAIN_LAYERS, PANDAS_FORMS, layers
from random_sql.nested import NESTED


@dataclass(frozen=True)
class Kind:
    """A type: its name in Spark and in DuckDB, its family, and values that meet each other."""

    spark: str
    duck: str
    family: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Raw:
    """A value of a type that has no literal of the same form in both: the SQL of either."""

    spark: str
    duck: str


_INTS = (0, 1, 2, 3, 7)
_DECIMALS = (Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"))
_DAYS = tuple(datetime.date(*day) for day in ((1969, 12, 31), (2024, 2, 29), (2024, 3, 1)))

INT = Kind("int", "INTEGER", "number", _INTS)
TEXT = Kind("string", "VARCHAR", "text", ("", "a", "A", "a text of more than eight bytes"))
KEYS = (
    INT,
    Kind("bigint", "BIGINT", "number", (*_INTS, 2**40)),
    TEXT,
    Kind("date", "DATE", "date", _DAYS),
    Kind("decimal(5,2)", "DECIMAL(5,2)", "decimal", _DECIMALS),
    Kind("decimal(12,3)", "DECIMAL(12,3)", "decimal", (*_DECIMALS, Decimal("0.125"))),
    Kind("double", "DOUBLE", "double", (0.0, -0.0, 1.5, float("nan"))),
    Kind("float", "FLOAT", "double", (0.0, -0.0, 1.5)),
    Kind("smallint", "SMALLINT", "number", _INTS),
    Kind("tinyint", "TINYINT", "number", _INTS),
    Kind("boolean", "BOOLEAN", "truth", (True, False)),
)

#: The family of columns that are shown and never looked into. Those of nested types begin so.
RAW = "raw"

#: The expressions that look into a column, by its family.
LOOKS = {f"{RAW} {each.spark}": each.looks for each in NESTED}


def is_raw(family: str) -> bool:
    """Whether the columns of a family are only shown, or looked into by `LOOKS`."""
    return family.startswith(RAW)


def _raw(spark: str, duck: str, *values: tuple[str, str]) -> Kind:
    return Kind(spark, duck, RAW, tuple(Raw(*each) for each in values))


def _both(*texts: str) -> list[tuple[str, str]]:
    return [(text, text) for text in texts]


_LONG = "x" * 300
_TIMES = _both("TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP '2024-02-29 12:00:00'")
PAYLOADS = (
    _raw("binary", "BLOB", ("X''", "''::BLOB"), ("X'00FF41'", r"'\x00\xFFA'::BLOB")),
    _raw("timestamp", "TIMESTAMP", *_TIMES),
    _raw("timestamp_ntz", "TIMESTAMP", *((s.replace("P '", "P_NTZ '"), d) for s, d in _TIMES)),
    _raw("double", "DOUBLE", *_both(*(f"CAST('{x}' AS DOUBLE)" for x in ("-0.0", "NaN", "0.0")))),
    _raw("float", "FLOAT", *_both("CAST('-0.0' AS FLOAT)", "CAST('-Infinity' AS FLOAT)")),
    _raw("decimal(38,10)", "DECIMAL(38,10)", *_both(f"{'9' * 28}.{'1' * 10}", "-0.0000000001")),
    _raw("decimal(18,0)", "DECIMAL(18,0)", *_both("9" * 18, "-1")),
    _raw("string", "VARCHAR", *_both(f"'{_LONG}'", "''", "'\u00e9\u20ac'", "'\U0001f600'")),
    _raw("boolean", "BOOLEAN", *_both("true", "false")),
    _raw("bigint", "BIGINT", *_both(str(2**63 - 1), "-1")),
    _raw(
        "array<array<string>>",
        "VARCHAR[][]",
        (f"array(array('a'), array(NULL, '{_LONG}'))", f"[['a'], [NULL, '{_LONG}']]"),
        ("array(CAST(NULL AS array<string>))", "[NULL]"),
    ),
    *(
        Kind(each.spark, each.duck, f"{RAW} {each.spark}", tuple(Raw(*v) for v in each.values))
        for each in NESTED
    ),
)

#: Types that a cache gives as columns, so that nothing between it and an exchange makes rows.
PRIMITIVE = ("int", "bigint", "smallint", "tinyint", "boolean", "float", "double")


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: Kind
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """A table with its rows, and where Spark has them from."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    form: str
    #: Whether it has one partition, so that no join shuffles it.
    whole: bool = False
    #: What stands between the stored rows and the table, from below.
    layers: tuple[str, ...] = ()
    #: Rows that are stored as well; filters among the layers remove them.
    noise: tuple[tuple[Any, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)

    def repeats(self, place: int) -> int:
        """How many rows one value of a column has at most; null does not count."""
        known = Counter(row[place] for row in self.rows if row[place] is not None)
        return max(known.values(), default=0)


class TableMaker:
    """Makes tables; where their rows come from is dealt from decks."""

    def __init__(self, seed: int, extra_forms: Mapping[str, int], python: bool = True) -> None:
        self._forms = Deck(f"{seed} forms", {**FORMS, **extra_forms})
        self._layers = Deck(f"{seed} layers", MAIN_LAYERS)
        self._python = python

    def tables(self, random: Random, batch: int, count: int = 8) -> list[Table]:
        """Tables with keys `k` and `j` of which each can be joined with each."""
        families = [_family(random)]
        # Every second time `k` and `j` can be compared.
        families.append(families[0] if random.random() < 0.5 else _family(random))
        # Shuffles are most of the work, and are the same for most of what goes wrong in plans.
        whole = random.random() < 0.35
        # Python workers are slow.
        python = self._python
        found = []
        for number in range(count):
            place = batch * count + number
            form, main = self._forms.card(place), self._layers.card(place)
            if not all(holds(form, kind) for family in families for kind in family):
                form = "values"
            if form in PANDAS_FORMS:
                form, python = (form, False) if python else ("values", False)
            stack = layers(random, main, python)
            python = python and "python udf" not in stack
            made = _table(random, number, families, form, stack)
            found.append(replace(made, whole=whole))
        return found


def _family(random: Random) -> list[Kind]:
    # Most users join by numbers and text; -0.0 and NaN are not in most of their keys.
    names = ["number"] * 4 + ["text"] * 3 + ["date", "decimal", "double"]
    name = random.choice(names)
    return [kind for kind in KEYS if kind.family == name]


def _table(
    random: Random, number: int, families: list[list[Kind]], form: str, stack: tuple[str, ...]
) -> Table:
    payloads = [kind for kind in PAYLOADS if holds(form, kind)]
    columns = [
        Column("k", random.choice(families[0])),
        Column("j", random.choice(families[1])),
        Column(f"v{number}", INT),
        Column(f"s{number}", TEXT),
        Column(f"n{number}", INT, nullable=False),
    ]
    cached = any(layer in CACHES for layer in stack)
    if random.random() < (0.6 if cached else 0.25):
        # One that a cache gives as columns, if its keys are such.
        payloads = [kind for kind in payloads if kind.spark in PRIMITIVE]
        del columns[3]
    nested = [kind for kind in payloads if kind.family in LOOKS]
    for letter in "ab"[: random.randint(0, 2)]:
        kinds = nested if nested and random.random() < 0.5 else payloads
        columns.append(Column(f"x{number}{letter}", random.choice(kinds)))
    hot = random.random() < 0.2
    if hot and form not in IN_FILES:
        form = random.choice([each for each in IN_FILES if _all_held(each, columns)])
    rows = _hot_rows(random, columns) if hot else _few_rows(random, columns)
    noise = []
    if "filter" in stack:
        # With keys of rows that stay, so that one of them too many is seen above joins.
        for _ in range(random.randint(2, 6)):
            key = random.choice(rows)[0] if rows else _value(random, columns[0])
            noise.append((key, *(_value(random, column) for column in columns[1:])))
    return Table(f"t{number}", tuple(columns), tuple(rows), form, layers=stack, noise=tuple(noise))


def holds(form: str, kind: Kind) -> bool:
    """Whether rows that are stored so keep values of this type."""
    scalar = not kind.spark.startswith(("array", "struct", "map"))
    if form == "csv":
        return scalar and kind.spark != "binary"
    if form == "mapInPandas":
        # To pandas a NaN is a null.
        return scalar and kind.spark not in ("double", "float", "timestamp", "timestamp_ntz")
    return True


def _all_held(form: str, columns: Sequence[Column]) -> bool:
    return all(holds(form, column.kind) for column in columns)


def _few_rows(random: Random, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    size = 0 if random.random() < 0.07 else random.randint(3, 12)
    most = random.choice((1, 1, 2, 2, 3))
    times: Counter[Any] = Counter()
    rows = []
    for _ in range(size):
        row = tuple(_value(random, column) for column in columns)
        if row[0] is None or times[row[0]] < most:
            times[row[0]] += 1
            rows.append(row)
    return rows


def _hot_rows(random: Random, columns: Sequence[Column]) -> list[tuple[Any, ...]]:
    """Many rows of one key, or without a key, for several tasks."""
    first = [tuple(_value(random, column) for column in columns) for _ in range(5)]
    (key, *_), *_ = first
    size = random.randint(30, 90)
    hot = [(key, *(_value(random, column) for column in columns[1:])) for _ in range(size)]
    return [*first, *hot]


def _value(random: Random, column: Column) -> Any:
    if column.nullable and random.random() < 0.15:
        return None
    return random.choice(column.kind.values)
