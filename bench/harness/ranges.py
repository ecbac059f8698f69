"""Queries with range joins, and their tables.

Points and intervals are in 0 to 100,000,000. Short intervals have a length of about 1,000, long
ones of about 20,000. One in a hundred of the mixed ones is a hundred times as long. Starts by
Zipf's law are in a thousand parts of the values, and a tenth of them is in the first one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from harness.questions import Question
from harness.tables import save

_VALUES = 100_000_000
_POINTS = 1_000_000
_INTERVALS = 100_000
_EVENTS = 2_000_000

_ALL = ("stock", "by-hand", "ours", "duckdb", "polars")
_LARGE = _ALL[1:]


@dataclass(frozen=True)
class RangeJoin:
    """An inner join of tables a and b by a range."""

    name: str
    about: str
    tables: tuple[str, str]
    columns: str
    on: str
    #: The ends of the intervals of both sides, which are equal for points.
    ends: tuple[tuple[str, str], tuple[str, str]]
    #: Of a bin of the query by hand.
    width: int
    #: The number of a bin, of a value.
    bin: str = "{} DIV {width}"
    ways: tuple[str, ...] = _ALL
    #: The query that stock Spark runs instead.
    smaller: str = ""

    def question(self, data: Path, conf: dict[str, str]) -> Question:
        """The query, over the files of a folder."""
        a, b = self.tables
        with duckdb.connect() as connection:
            counts = [
                connection.execute(f"SELECT count(*) FROM '{data}/{table}.parquet'").fetchone()
                for table in self.tables
            ]
        pairs = [found[0] for found in counts if found]
        return Question(
            self.name,
            self.about,
            f"SELECT {self.columns} FROM {a} a JOIN {b} b ON {self.on}",
            data,
            conf,
            ways=self.ways,
            by_hand=self.by_hand(),
            pairs=pairs[0] * pairs[1],
            smaller=self.smaller,
        )

    def by_hand(self) -> str:
        """The query with bins, as Databricks' guide describes them: rows with a bin in common."""
        (a, b), (ends, other) = self.tables, self.ends
        on = f"a.bin = b.bin AND {self.on}"
        if ends[0] != ends[1]:
            # Intervals that have several bins in common meet in the first one.
            on += f" AND a.bin = greatest({self._bin(ends[0])}, {self._bin(other[0])})"
        sides = f"{self._with_bins(a, 'a', ends)} JOIN {self._with_bins(b, 'b', other)}"
        return f"SELECT {self.columns} FROM {sides} ON {on}"

    def _with_bins(self, table: str, name: str, ends: tuple[str, str]) -> str:
        first, last = map(self._bin, ends)
        bins = first if first == last else f"explode(sequence({first}, {last}))"
        return f"(SELECT *, {bins} AS bin FROM {table} {name}) {name}"

    def _bin(self, value: str) -> str:
        return self.bin.format(value, width=self.width)


#: Numbers of bins of timestamps, which have no time zone.
SECONDS = "unix_seconds(CAST({} AS TIMESTAMP)) DIV {width}"


def _points(
    name: str,
    about: str,
    tables: tuple[str, str],
    *,
    width: int = 1500,
    ways: tuple[str, ...] = _LARGE,
    smaller: str = "point-small",
) -> RangeJoin:
    on, ends = "a.t >= b.s AND a.t < b.e", (("a.t", "a.t"), ("b.s", "b.e"))
    return RangeJoin(
        name, about, tables, "a.pid, b.iid", on, ends, width, ways=ways, smaller=smaller
    )


def _overlaps(name: str, about: str, tables: tuple[str, str], *, large: bool) -> RangeJoin:
    columns, on = "a.iid, b.iid AS jid", "a.s < b.e AND b.s < a.e"
    ends = (("a.s", "a.e"), ("b.s", "b.e"))
    ways, smaller = (_LARGE, "overlap-small") if large else (_ALL, "")
    return RangeJoin(name, about, tables, columns, on, ends, width=1500, ways=ways, smaller=smaller)


def _bands(
    name: str, about: str, tables: tuple[str, str], ways: tuple[str, ...], smaller: str = ""
) -> RangeJoin:
    near = ("b.t - INTERVAL '5 seconds'", "b.t + INTERVAL '5 seconds'")
    on = f"a.k = b.k AND a.t BETWEEN {' AND '.join(near)}"
    ends = (("a.t", "a.t"), near)
    return RangeJoin(
        name, about, tables, "a.id, b.id AS jd", on, ends, 10, SECONDS, ways=ways, smaller=smaller
    )


#: Stock Spark would take hours for some.
_JOINS = (
    _points(
        "point-small",
        "200,000 points, 20,000 intervals",
        ("points_small", "short_small"),
        ways=_ALL,
        smaller="",
    ),
    _points("point-few", "1 M points, 10 intervals", ("points", "few"), ways=_ALL, smaller=""),
    _points(
        "point-1000", "1 M points, 1,000 intervals", ("points", "thousand"), ways=_ALL, smaller=""
    ),
    _points("point-short", "1 M points, 100,000 short intervals", ("points", "short")),
    _points(
        "point-long", "1 M points, 100,000 long intervals", ("points", "lengthy"), width=30_000
    ),
    _points("point-mixed", "1 M points, 100,000 mixed intervals", ("points", "mixed")),
    _points("point-zipf", "1 M points, 100,000 intervals, Zipf", ("points", "zipf_parts")),
    # Neither side is small enough to broadcast.
    _points("point-large", "2 M points, 1 M intervals", ("points_2m", "short_1m")),
    _overlaps(
        "overlap-small",
        "20,000 intervals, 20,000 intervals",
        ("short_small", "other_small"),
        large=False,
    ),
    _overlaps("overlap", "200,000 intervals, 200,000 intervals", ("long", "other"), large=True),
    _bands(
        "band-small",
        "two streams of 400,000 events by key",
        ("left_400k", "right_400k"),
        _ALL,
    ),
    # DuckDB and Polars test all pairs of the hot key, for minutes.
    _bands(
        "band-2m",
        "two streams of 2 M events by key",
        ("left_events", "right_events"),
        ("by-hand", "ours"),
        "band-small",
    ),
)


def generate(scale: float, folder: Path) -> Path:
    """Make the tables, if they are missing."""
    return save(_tables(scale), folder)


def _tables(scale: float) -> dict[str, str]:
    def rows(count: float) -> int:
        return max(1, round(count * scale))

    def points(count: float) -> str:
        return f"SELECT i AS pid, {_random(3, _VALUES)} AS t FROM range({rows(count)}) r(i)"

    def intervals(count: float, seed: int, start: str = "", length: str = "") -> str:
        start = start or _random(seed, _VALUES)
        length = length or f"500 + {_random(seed + 1, 1000)}"
        return (
            f"SELECT i AS iid, s, s + {length} AS e "
            f"FROM (SELECT i, {start} AS s FROM range({rows(count)}) r(i))"
        )

    def events(count: float, seed: int) -> str:
        # One key has a tenth of the rows, the others have 18 each.
        key = _random(seed + 1, rows(count / 20))
        micros = f"1600000000000000 + {_random(seed + 2, rows(count * 10))} * 100000"
        return (
            f"SELECT i AS id, CASE WHEN {_random(seed, 10)} = 0 THEN 0 ELSE {key} END AS k, "
            f"make_timestamp({micros}) AS t FROM range({rows(count)}) r(i)"
        )

    mixed = f"CASE WHEN i % 100 = 0 THEN 100000 ELSE 500 END + {_random(12, 1000)}"
    # The logarithm of a rank by Zipf's law is uniform. Parts of near ranks are far apart.
    rank = f"CAST(floor(pow(1000, {_random(71, 10**6)} / 1e6)) AS BIGINT)"
    zipf = f"{rank} * 7919 % 1000 * {_VALUES // 1000} + {_random(72, _VALUES // 1000)}"
    return {
        "points": points(_POINTS),
        "points_small": points(_POINTS / 5),
        "points_2m": points(_POINTS * 2),
        "few": intervals(10 / scale, 21),
        "thousand": intervals(1000 / scale, 31),
        "short": intervals(_INTERVALS, 41),
        "short_1m": intervals(_INTERVALS * 10, 41),
        "short_small": intervals(_INTERVALS / 5, 41),
        "other_small": intervals(_INTERVALS / 5, 51),
        "lengthy": intervals(_INTERVALS, 61, length=f"10000 + {_random(62, 20000)}"),
        "mixed": intervals(_INTERVALS, 61, length=mixed),
        "zipf_parts": intervals(_INTERVALS, 71, start=zipf),
        "long": intervals(2 * _INTERVALS, 81),
        "other": intervals(2 * _INTERVALS, 91),
        "left_events": events(_EVENTS, 101),
        "right_events": events(_EVENTS, 111),
        "left_400k": events(_EVENTS / 5, 101),
        "right_400k": events(_EVENTS / 5, 111),
    }


def _random(seed: int, below: int) -> str:
    return f"CAST(hash(i, {seed}) % {below} AS BIGINT)"


def questions(data: Path, conf: dict[str, str]) -> list[Question]:
    """The queries."""
    return [join.question(data, conf) for join in _JOINS]
