"""Queries with range joins, and their tables.

Points and intervals are in 0 to 100,000,000. Short intervals have a length of about 1,000. One in a
hundred of the mixed ones is a hundred times as long. Starts by Zipf's law have a tenth of all
intervals in a thousandth of the values.
"""

from __future__ import annotations

import time
from fnmatch import fnmatch
from pathlib import Path
from statistics import median

import duckdb

from harness.measure import progress
from harness.questions import Question

_VALUES = 100_000_000
_POINTS = 1_000_000
_INTERVALS = 100_000
_EVENTS = 2_000_000

_POINT = "SELECT {{hint}} pid, iid FROM {points} JOIN {intervals} ON t >= s AND t < e"
_OVERLAP = "SELECT {{hint}} a.iid, b.iid AS jid FROM {a} a JOIN {b} b ON a.s < b.e AND b.s < a.e"
_BAND = """
    SELECT {{hint}} a.id, b.id AS jd FROM {a} a JOIN {b} b
    ON a.k = b.k AND a.t BETWEEN b.t - INTERVAL 5 SECONDS AND b.t + INTERVAL 5 SECONDS
"""

#: Name, what it is, query, whether stock Spark ends within minutes.
_QUERIES = (
    (
        "point-small",
        "200,000 points, 20,000 intervals",
        _POINT,
        ("points_small", "short_small"),
        True,
    ),
    ("point-few", "1 M points, 10 intervals", _POINT, ("points", "few"), True),
    ("point-1000", "1 M points, 1,000 intervals", _POINT, ("points", "thousand"), True),
    ("point-short", "1 M points, 100,000 short intervals", _POINT, ("points", "short"), False),
    ("point-mixed", "1 M points, 100,000 mixed intervals", _POINT, ("points", "mixed"), False),
    ("point-zipf", "1 M points, 100,000 intervals, Zipf", _POINT, ("points", "zipf"), False),
    # Neither side is small enough to broadcast.
    ("point-large", "2 M points, 1 M intervals", _POINT, ("points_2m", "short_1m"), False),
    (
        "overlap-small",
        "20,000 intervals, 20,000 intervals",
        _OVERLAP,
        ("short_small", "other_small"),
        True,
    ),
    ("overlap", "200,000 intervals, 200,000 intervals", _OVERLAP, ("long", "other"), False),
    (
        "band-small",
        "two streams of 100,000 events by key",
        _BAND,
        ("left_small", "right_small"),
        True,
    ),
    ("band-2m", "two streams of 2 M events by key", _BAND, ("left_events", "right_events"), False),
)


def generate(scale: float, folder: Path) -> Path:
    """Make the tables, if they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        for name, sql in _tables(scale).items():
            path = folder / f"{name}.parquet"
            if not path.exists():
                making = path.with_suffix(".making")
                connection.execute(
                    f"COPY ({sql}) TO '{making}' (FORMAT parquet, ROW_GROUP_SIZE 100000)"
                )
                making.rename(path)
    return folder


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
    zipf = (
        f"CASE WHEN i % 10 = 0 THEN {_random(14, _VALUES // 1000)} ELSE {_random(15, _VALUES)} END"
    )
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
        "mixed": intervals(_INTERVALS, 61, length=mixed),
        "zipf": intervals(_INTERVALS, 71, start=zipf),
        "long": intervals(2 * _INTERVALS, 81),
        "other": intervals(2 * _INTERVALS, 91),
        "left_events": events(_EVENTS, 101),
        "right_events": events(_EVENTS, 111),
        "left_small": events(_EVENTS / 20, 101),
        "right_small": events(_EVENTS / 20, 111),
    }


def _random(seed: int, below: int) -> str:
    return f"CAST(hash(i, {seed}) % {below} AS BIGINT)"


def _sql(query: str, tables: tuple[str, str]) -> str:
    one, other = tables
    return query.format(points=one, intervals=other, a=one, b=other)


def questions(data: Path, conf: dict[str, str]) -> list[Question]:
    """The queries. Stock Spark would take hours for some."""
    return [
        Question(
            name,
            about,
            _sql(query, tables),
            data,
            conf,
            ways=("stock", "ours") if by_stock else ("ours",),
        )
        for name, about, query, tables, by_stock in _QUERIES
    ]


def show_duckdb(data: Path, threads: int, patterns: list[str], rounds: int = 3) -> None:
    """Print the times of DuckDB, and its numbers of rows."""
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}")
        connection.execute("SET enable_progress_bar = false")
        for path in data.glob("*.parquet"):
            connection.execute(f"CREATE VIEW {path.stem} AS FROM '{path}'")
        for name, _, query, tables, _ in _QUERIES:
            # A hash join, which tests all pairs of the hot key for minutes.
            if name == "band-2m":
                continue
            if patterns and not any(fnmatch(name, pattern) for pattern in patterns):
                continue
            sql = _sql(query, tables).replace("{hint}", "")
            seconds = []
            for _ in range(rounds + 1):
                begin = time.perf_counter()
                connection.execute(f"CREATE OR REPLACE TEMP TABLE found AS {sql}")
                seconds.append(time.perf_counter() - begin)
            rows = connection.execute("SELECT count(*) FROM found").fetchone()
            progress(f"{name:24} duckdb {median(seconds[1:]):8.2f} s, {rows and rows[0]} rows")
