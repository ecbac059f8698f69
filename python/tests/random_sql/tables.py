"""Small random tables: types of keys, rows with nulls and duplicates, ways to store them."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any


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

#: The family of columns that are shown and never looked into.
RAW = "raw"


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
        "array<int>",
        "INTEGER[]",
        ("array(1, NULL, 3)", "[1, NULL, 3]"),
        ("CAST(array() AS array<int>)", "[]"),
    ),
    _raw(
        "array<array<string>>",
        "VARCHAR[][]",
        (f"array(array('a'), array(NULL, '{_LONG}'))", f"[['a'], [NULL, '{_LONG}']]"),
        ("array(CAST(NULL AS array<string>))", "[NULL]"),
    ),
    _raw(
        "struct<a: int, b: string>",
        "STRUCT(a INTEGER, b VARCHAR)",
        ("named_struct('a', 1, 'b', 'x')", "{'a': 1, 'b': 'x'}"),
        ("named_struct('a', CAST(NULL AS int), 'b', '')", "{'a': NULL, 'b': ''}"),
    ),
    _raw(
        "map<string, int>",
        "MAP(VARCHAR, INTEGER)",
        ("map('a', 1, 'b', NULL)", "MAP {'a': 1, 'b': NULL}"),
        ("CAST(map() AS map<string, int>)", "MAP {}"),
    ),
)

#: An inline relation, which the optimizer looks into; an RDD; files.
FORMS = ("values", "rdd", "file")
#: Files in buckets by the key, which take longer to make.
BUCKETS = "buckets"


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: Kind
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """A table with its rows, and how Spark has it."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    form: str
    #: Whether it has one partition, so that no join shuffles it.
    whole: bool = False

    def repeats(self, place: int) -> int:
        """How many rows one value of a column has at most; null does not count."""
        known = Counter(row[place] for row in self.rows if row[place] is not None)
        return max(known.values(), default=0)


def make_tables(random: Random, count: int = 8) -> list[Table]:
    """Tables with keys `k` and `j` of which each can be joined with each."""
    families = [_family(random)]
    # Every second time `k` and `j` can be compared.
    families.append(families[0] if random.random() < 0.5 else _family(random))
    # Shuffles are most of the work, and are the same for most of what goes wrong in plans.
    whole = random.random() < 0.5
    return [replace(_table(random, number, families), whole=whole) for number in range(count)]


def _family(random: Random) -> list[Kind]:
    # Most users join by numbers and text; -0.0 and NaN are not in most of their keys.
    names = ["number"] * 4 + ["text"] * 3 + ["date", "decimal", "double"]
    name = random.choice(names)
    return [kind for kind in KEYS if kind.family == name]


def _table(random: Random, number: int, families: list[list[Kind]]) -> Table:
    columns = (
        Column("k", random.choice(families[0])),
        Column("j", random.choice(families[1])),
        Column(f"v{number}", INT),
        Column(f"s{number}", TEXT),
        Column(f"n{number}", INT, nullable=False),
        *(Column(f"x{number}{x}", random.choice(PAYLOADS)) for x in "ab"[: random.randint(0, 2)]),
    )
    if random.random() < 0.2:
        return _hot_table(random, number, columns)
    size = 0 if random.random() < 0.07 else random.randint(3, 12)
    most = random.choice((1, 1, 2, 2, 3))
    times: Counter[Any] = Counter()
    rows = []
    for _ in range(size):
        row = tuple(_value(random, column) for column in columns)
        if row[0] is None or times[row[0]] < most:
            times[row[0]] += 1
            rows.append(row)
    form = BUCKETS if random.random() < 0.04 else random.choice(FORMS)
    return Table(f"t{number}", columns, tuple(rows), form)


def _hot_table(random: Random, number: int, columns: tuple[Column, ...]) -> Table:
    """One with many rows of one key, or with no key, written by several tasks."""
    first = [tuple(_value(random, column) for column in columns) for _ in range(5)]
    (key, *_), *_ = first
    size = random.randint(30, 90)
    hot = [(key, *(_value(random, column) for column in columns[1:])) for _ in range(size)]
    return Table(f"t{number}", columns, (*first, *hot), "file")


def _value(random: Random, column: Column) -> Any:
    if column.nullable and random.random() < 0.15:
        return None
    return random.choice(column.kind.values)
