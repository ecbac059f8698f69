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
)

#: An inline relation, which the optimizer looks into; an RDD; a file.
FORMS = ("values", "rdd", "file")


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
    whole = random.random() < 0.6
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
    )
    size = 0 if random.random() < 0.07 else random.randint(3, 12)
    most = random.choice((1, 1, 2, 2, 3))
    times: Counter[Any] = Counter()
    rows = []
    for _ in range(size):
        row = tuple(_value(random, column) for column in columns)
        if row[0] is None or times[row[0]] < most:
            times[row[0]] += 1
            rows.append(row)
    return Table(f"t{number}", columns, tuple(rows), random.choice(FORMS))


def _value(random: Random, column: Column) -> Any:
    if column.nullable and random.random() < 0.15:
        return None
    return random.choice(column.kind.values)
