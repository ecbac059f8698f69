"""The joins of db-benchmark, and full joins of its tables.

The tables follow its public description: a table of 10 million rows is joined with tables of a
millionth, a thousandth and all of its rows. Nine keys in ten have a match, on either side.
"""

from __future__ import annotations

from pathlib import Path

from harness.questions import Question
from harness.tables import save

#: Of a scale factor, in the large tables.
_ROWS = 1_000_000
_WAYS = ("stock", "ours", "duckdb", "polars")

_MEDIUM = "medium.id4 AS medium_id4, v2"
#: Columns of the large right table, without its key.
_BIG = "big.id1 AS big_id1, big.id2 AS big_id2, big.id4 AS big_id4, big.id5 AS big_id5, v2"

#: Name, what it is, query.
_QUERIES = (
    (
        "small-inner",
        "small inner on int",
        "SELECT x.*, small.id4 AS small_id4, v2 FROM x JOIN small ON x.id1 = small.id1",
    ),
    (
        "medium-inner",
        "medium inner on int",
        f"SELECT x.*, medium.id1 AS medium_id1, {_MEDIUM} FROM x JOIN medium ON x.id2 = medium.id2",
    ),
    (
        "medium-left",
        "medium outer on int",
        f"SELECT x.*, medium.id1 AS medium_id1, {_MEDIUM} "
        "FROM x LEFT JOIN medium ON x.id2 = medium.id2",
    ),
    (
        "medium-string",
        "medium inner on factor",
        f"SELECT x.*, medium.id2 AS medium_id2, {_MEDIUM} FROM x JOIN medium ON x.id5 = medium.id5",
    ),
    (
        "big-inner",
        "big inner on int",
        f"SELECT x.*, {_BIG} FROM x JOIN big ON x.id3 = big.id3",
    ),
    (
        "big-full",
        "not of db-benchmark: full join of the two large tables",
        f"SELECT x.*, big.id3 AS big_id3, {_BIG} FROM x FULL JOIN big ON x.id3 = big.id3",
    ),
    (
        "chain-full",
        "not of db-benchmark: full joins of three large tables",
        # USING would be shorter, but Polars takes the key of the first table for that of all.
        "SELECT COALESCE(x.id3, big.id3, other.id3) AS id3, x.id1, x.id2, x.id4, x.id5, v1, "
        f"{_BIG}, v3 FROM x FULL JOIN big ON x.id3 = big.id3 "
        "FULL JOIN other ON COALESCE(x.id3, big.id3) = other.id3",
    ),
)


def generate(scale: float, folder: Path) -> Path:
    """Make the tables, if they are missing."""
    rows = max(1000, round(_ROWS * scale))
    tables = {
        "small": _right(rows // 1_000_000, 1),
        "medium": _right(rows // 1_000, 2),
        "big": _right(rows, 3),
        "other": _large(rows, "v3", 30),
        "x": _large(rows, "v1", 20),
    }
    return save(tables, folder)


def _keys(rows: int) -> tuple[int, int, int]:
    """How many different values `id1`, `id2` and `id3` have."""
    return max(1, rows // 1_000_000), max(1, rows // 1_000), rows


def _large(rows: int, value: str, salt: int) -> str:
    """Each `id3` once, in random order, and random values of the other keys."""
    few, some, _ = _keys(rows)
    return (
        f"SELECT id1, id2, id3, {_strings(3)}, {value} "
        f"FROM (SELECT {_random(salt, few)} + 1 AS id1, {_random(salt + 1, some)} + 1 AS id2, "
        f"CAST(i + 1 AS INTEGER) AS id3, {_random(salt + 2, 10**8)} / 1e6 AS {value} "
        f"FROM range({rows}) numbers(i)) ORDER BY hash(id3, {salt})"
    )


def _right(rows: int, columns: int) -> str:
    """A table whose last integer column is its key, of which one in ten is not in the large one."""
    rows = max(1, rows)
    scales = (rows // 10 ** (3 * (columns - n)) for n in range(1, columns))
    others = [f"{_random(40 + n, max(1, of))} + 1 AS id{n}" for n, of in enumerate(scales, 1)]
    key = f"CAST(i + 1 + {rows // 10} AS INTEGER) AS id{columns}"
    numbers = ", ".join((*others, key, f"{_random(50, 10**8)} / 1e6 AS v2"))
    return (
        f"SELECT *, {_strings(columns)} FROM (SELECT {numbers} FROM range({rows}) numbers(i)) "
        f"ORDER BY hash(id{columns})"
    )


def _strings(columns: int) -> str:
    """The first keys as strings."""
    return ", ".join(f"'id' || id{n} AS id{n + 3}" for n in range(1, columns + 1))


def _random(salt: int, below: int) -> str:
    return f"CAST(hash(i, {salt}) % {below} AS INTEGER)"


def joins(data: Path, conf: dict[str, str]) -> list[Question]:
    """The queries."""
    return [Question(name, about, sql, data, conf, ways=_WAYS) for name, about, sql in _QUERIES]
