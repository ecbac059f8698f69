"""Random range joins and joins with OR, compared with brute force in Python.

`SKEWEXT_RANDOM_RANGES=10000` runs that many, `SKEWEXT_RANDOM_SEED` others. One in twenty also runs
in stock Spark.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from amount import TEST_SLOW
from stock import changed, setting

import pyspark_skewext as skewext

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]
Match = Callable[[Row, Row], bool]

CASES = int(os.environ.get("SKEWEXT_RANDOM_RANGES", 200 if TEST_SLOW else 40))
SEED = int(os.environ.get("SKEWEXT_RANDOM_SEED", 64))
# Columns of a row.
ID, LO, HI, K, N = range(5)
#: Cases with the same sides: tables take longer to make than to join.
BATCH = 4
HOWS = ("inner", "left", "right", "full", "left semi", "left anti")
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)

#: For each type its values, of which some are special, and a distance in SQL and in Python.
VALUES: dict[str, Callable[[random.Random], Any]] = {
    "INT": lambda r: r.choice((-(2**31), 2**31 - 1)) if _rare(r) else r.randrange(30),
    "BIGINT": lambda r: r.choice((-(2**63), 2**63 - 1)) if _rare(r) else r.randrange(30),
    "SMALLINT": lambda r: r.randrange(-15, 15),
    "DECIMAL(12,2)": lambda r: Decimal(r.randrange(300)).scaleb(-1),
    "DECIMAL(30,4)": lambda r: Decimal(r.randrange(30)) * 10**20,
    "DOUBLE": lambda r: (
        r.choice((float("nan"), float("inf"), -float("inf"), -0.0, 0.0))
        if _rare(r)
        else r.randrange(30) / 2
    ),
    "FLOAT": lambda r: r.choice((float("nan"), -0.0)) if _rare(r) else r.randrange(30) / 4,
    "DATE": lambda r: date(2024, 2, 20) + DAY * r.randrange(30),
    "TIMESTAMP": lambda r: datetime(2024, 2, 28, 23, 59, 45) + SECOND * r.randrange(30),
    "TIMESTAMP_NTZ": lambda r: datetime(2024, 2, 28, 23, 59, 45) + SECOND * r.randrange(30),
    "STRING": lambda r: r.choice(("", "a", "ä", "z", "\U0001f600")) * r.randrange(1, 12),
}
#: Types whose values can be moved: by what in SQL, and in Python.
MOVES: dict[str, tuple[str, Any]] = {
    "SMALLINT": ("2S", 2),
    "DECIMAL(12,2)": ("2.5BD", Decimal("2.5")),
    "DATE": ("INTERVAL 3 DAYS", 3 * DAY),
    "TIMESTAMP": ("INTERVAL 4 SECONDS", 4 * SECOND),
    "TIMESTAMP_NTZ": ("INTERVAL 4 SECONDS", 4 * SECOND),
}
#: Types with a difference of their own type, and how Python computes with their numbers.
DIFFERENCES: dict[str, Callable[[Any], Any]] = {
    "INT": lambda value: (value + 2**31) % 2**32 - 2**31,
    "BIGINT": lambda value: (value + 2**63) % 2**64 - 2**63,
    "DECIMAL(12,2)": Decimal,
    "DOUBLE": float,
}
#: So that the ends of one side have common prefixes, and different ones.
PREFIXES = ("", "a", "zz", "common prefix ")


def _rare(r: random.Random) -> bool:
    return r.random() < 0.08


def _order(value: Any) -> Any:
    """How Spark orders values: NaN is the largest one, strings by bytes."""
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value)
    return value.encode() if isinstance(value, str) else value


def _less(one: Any, other: Any) -> bool:
    return one is not None and other is not None and bool(_order(one) < _order(other))


def _upto(one: Any, other: Any) -> bool:
    return one is not None and other is not None and bool(_order(one) <= _order(other))


def _moved(value: Any, by: Any) -> Any:
    return None if value is None else value + by


@dataclass(frozen=True)
class Case:
    """A query, its sides and its settings."""

    kind: str
    of: str
    how: str
    sides: tuple[list[Row], list[Row]]
    on: str
    match: Match
    hint: str
    source: str
    sink: str
    settings: dict[str, str]

    @property
    def query(self) -> str:
        """The query over the views `l` and `r`."""
        shown = "l.id AS a" if self.how.startswith("left ") else "l.id AS a, r.id AS b"
        return f"SELECT {self.hint} {shown} FROM l {self.how} JOIN r ON {self.on}"

    def rows(self) -> Counter[Row]:
        """The rows by brute force."""
        pairs = [(a, b) for a in self.sides[0] for b in self.sides[1] if self.match(a, b)]
        left, right = {a[ID] for a, _ in pairs}, {b[ID] for _, b in pairs}
        if self.how.startswith("left "):
            wanted = self.how == "left semi"
            return Counter((a[ID],) for a in self.sides[0] if (a[ID] in left) == wanted)
        found: list[Row] = [(a[ID], b[ID]) for a, b in pairs]
        if self.how in ("left", "full"):
            found += [(a[ID], None) for a in self.sides[0] if a[ID] not in left]
        if self.how in ("right", "full"):
            found += [(None, b[ID]) for b in self.sides[1] if b[ID] not in right]
        return Counter(found)


def _condition(r: random.Random, of: str, *, is_range: bool) -> tuple[str, str, Match]:
    kinds = ["point", "open end", "overlap", *(["band"] if of in MOVES else [])]
    kinds += [] if is_range else ["or"]
    kinds += ["difference"] if of in DIFFERENCES else ["prefixes"] if of == "STRING" else []
    kind = r.choice(kinds)
    if kind == "difference":
        return kind, *_difference(r, of)
    if kind == "prefixes":
        return kind, *_prefixes(r)
    below, lower = r.choice((("<", _less), ("<=", _upto)))
    above, upper = r.choice((("<", _less), ("<=", _upto)))
    if kind == "point":
        on = f"l.lo {below.replace('<', '>')} r.lo AND l.lo {above} r.hi"
        return kind, on, lambda a, b: lower(b[LO], a[LO]) and upper(a[LO], b[HI])
    if kind == "open end":
        on = f"r.lo {below} l.lo AND (r.hi IS NULL OR l.lo {above} r.hi)"
        return (
            kind,
            on,
            lambda a, b: lower(b[LO], a[LO]) and (b[HI] is None or upper(a[LO], b[HI])),
        )
    if kind == "overlap":
        on = f"l.lo {below} r.hi AND r.lo {above} l.hi"
        return kind, on, lambda a, b: lower(a[LO], b[HI]) and upper(b[LO], a[HI])
    if kind == "band":
        text, by = MOVES[of]
        on = f"l.lo BETWEEN r.lo - {text} AND r.lo + {text}"
        return (
            kind,
            on,
            lambda a, b: _upto(_moved(b[LO], -by), a[LO]) and _upto(a[LO], _moved(b[LO], by)),
        )

    def same(one: Any, other: Any) -> bool:
        return _upto(one, other) and _upto(other, one)

    on = "l.lo = r.lo OR l.hi = r.hi"
    return kind, on, lambda a, b: same(a[LO], b[LO]) or same(a[HI], b[HI])


def _difference(r: random.Random, of: str) -> tuple[str, Match]:
    """A difference between two constants, of which both may have one sign."""
    number = DIFFERENCES[of]
    least, most = sorted((number(r.randrange(-4, 5)), number(r.randrange(-4, 5))))

    def match(a: Row, b: Row) -> bool:
        if a[LO] is None or b[LO] is None:
            return False
        value = number(a[LO] - b[LO])
        return _upto(least, value) and _upto(value, most)

    return f"l.lo - r.lo BETWEEN CAST({least} AS {of}) AND CAST({most} AS {of})", match


def _prefixes(r: random.Random) -> tuple[str, Match]:
    """A point in an interval whose ends have other common prefixes than the points."""
    lower, upper, own = (r.choice(PREFIXES) for _ in range(3))

    def match(a: Row, b: Row) -> bool:
        if a[LO] is None:
            return False
        low, high = (
            None if end is None else prefix + end
            for prefix, end in ((lower, b[LO]), (upper, b[HI]))
        )
        return _upto(low, own + a[LO]) and _upto(own + a[LO], high)

    ends = f"concat('{lower}', r.lo) AND concat('{upper}', r.hi)"
    return f"concat('{own}', l.lo) BETWEEN {ends}", match


def _side(r: random.Random, of: str, sizes: tuple[int, ...]) -> list[Row]:
    rows: list[Row] = []
    for n in range(r.choice(sizes)):
        ends = [VALUES[of](r), VALUES[of](r)]
        if r.random() < 0.85:
            ends.sort(key=_order)
        row = (
            n,
            *(None if r.random() < 0.1 else end for end in ends),
            r.randrange(3),
            r.randrange(4),
        )
        rows.append(row[:1] + r.choice(rows)[1:] if rows and _rare(r) else row)
    return rows


def _case(number: int) -> Case:
    r = random.Random(f"{SEED}:sides {number // BATCH}")
    of = r.choice(tuple(VALUES))
    source = r.choice(("list", "list", "files", "cache"))
    # A broadcast side gets an index for each key from 32 rows on, one that spills from 16 on.
    sizes = ((0, 1, 7, 25, 40), (70, 150), (0, 1, 7, 25, 40), (1, 150))[number // BATCH % 4]
    sides = (_side(r, of, sizes), _side(r, of, sizes))
    r = random.Random(f"{SEED}:{number}")
    # So that few cases have some of them.
    is_spilled = number % (2 * BATCH) == BATCH + 1
    kind, on, match = _condition(r, of, is_range=is_spilled)
    matches = [match]
    if is_spilled or (kind != "or" and r.random() < 0.35):
        kind, on = f"{kind} beside a key", f"l.k = r.k AND {on}"
        matches.append(lambda a, b: a[K] == b[K])
    if r.random() < 0.3:
        on = f"({on}) AND l.n <> r.n"
        matches.append(lambda a, b: a[N] != b[N])
    broadcasts = ("/*+ BROADCAST(r) */", "/*+ BROADCAST(l) */")
    hint = "" if is_spilled or kind == "or" else r.choice(("", *broadcasts))
    conf = {
        "spark.skewext.rangeJoin.minPairs": "0",
        "spark.skewext.orJoin.minPairs": "0",
        "spark.sql.adaptive.enabled": r.choice(("true", "false")),
        "spark.sql.codegen.wholeStage": r.choice(("true", "false", "false")),
        "spark.sql.shuffle.partitions": r.choice(("1", "3")),
        # Differences of the largest numbers overflow.
        "spark.sql.ansi.enabled": "false",
    }
    if "key" in kind and not hint:
        # Both sides are shuffled, and most build sides spill.
        conf["spark.sql.autoBroadcastJoinThreshold"] = "-1"
        conf["spark.skewext.multiJoin.maxRowsInMemory"] = (
            "20" if is_spilled else r.choice(("20", "1000"))
        )
        conf["spark.skewext.multiJoin.groupRowsInMemory"] = r.choice(("5", "4096"))
    return Case(
        kind,
        of,
        r.choice(HOWS),
        sides,
        on,
        lambda a, b: all(m(a, b) for m in matches),
        hint,
        source,
        r.choice(tuple(SINKS)),
        conf,
    )


def _grouped(df: DataFrame, _: Path) -> Iterable[Row]:
    counted = df.groupBy(*df.columns).count().collect()
    return (tuple(row)[:-1] for row in counted for _ in range(row["count"]))


def _written(df: DataFrame, home: Path) -> Iterable[Row]:
    df.write.mode("overwrite").parquet(str(home / "written"))
    return df.sparkSession.read.parquet(str(home / "written")).collect()


def _cached(df: DataFrame, _: Path) -> Iterable[Row]:
    rows = df.cache().collect()
    df.unpersist()
    return rows


def _windowed(df: DataFrame, _: Path) -> Iterable[Row]:
    numbered = df.selectExpr("*", "row_number() OVER (PARTITION BY a ORDER BY a) AS n")
    return (tuple(row)[:-1] for row in numbered.collect())


#: What happens to the rows: each holds on to rows, or copies them, in another way.
SINKS: dict[str, Callable[[DataFrame, Path], Iterable[Row]]] = {
    "collected": lambda df, _: df.collect(),
    "sorted": lambda df, _: df.sort(*df.columns).collect(),
    "grouped": _grouped,
    "written": _written,
    "windowed": _windowed,
    "cached": _cached,
    "iterated": lambda df, _: df.toLocalIterator(),
    "united": lambda df, _: df.limit(0).unionAll(df).collect(),
    "shuffled": lambda df, _: df.repartition(3).collect(),
}


def _make_views(spark: SparkSession, case: Case, home: Path) -> None:
    schema = f"id INT, lo {case.of}, hi {case.of}, k INT, n INT"
    for name, rows in zip("lr", case.sides):
        df = spark.createDataFrame(rows, schema)
        if case.source == "files":
            df.write.mode("overwrite").parquet(str(home / name))
            df = spark.read.parquet(str(home / name))
        elif case.source == "cache":
            df = df.cache()
        df.createOrReplaceTempView(name)


def test_random_ranges(spark: SparkSession, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for number in range(CASES):
        case = _case(number)
        if number % BATCH == 0:
            spark.catalog.clearCache()
            _make_views(spark, case, tmp_path)
        with changed(spark, case.settings):
            df = spark.sql(case.query)
            found = Counter(map(tuple, SINKS[case.sink](df, tmp_path)))
            # Of a join beside a key, the operator is known when it has run.
            has_key = "key" in case.kind
            if has_key:
                assert Counter(map(tuple, df.collect())) == found, (number, case)
            is_told = has_key or number % 4 == 0
            told = str(skewext.explain(df)) if is_told else ""
            assert found == case.rows(), (number, case)
            if number % 20 == 0:
                with setting(spark, "spark.skewext.enabled", False):
                    rows = spark.sql(case.query).collect()
                    assert Counter(map(tuple, rows)) == found, (number, case)
        seen.update((case.kind, case.of, case.how, case.source, case.sink))
        seen["rows"] += sum(found.values())
        for operator in (
            "BroadcastRangeJoin",
            "RangeProduct",
            "became joins on equal keys",
            "range join",
            "of its ranges for each key",
        ):
            seen[operator] += operator in told
        is_spilled = "sorted both sides" in told
        seen["searched after a spill"] += is_spilled and "in this query" in told
    spark.catalog.clearCache()
    print(dict(seen.most_common()))
    # So that the test cannot pass without what it is about.
    assert seen["rows"] > 5 * CASES and set(HOWS) <= set(seen), seen
    assert seen["BroadcastRangeJoin"] and seen["range join"], seen
    assert seen["of its ranges for each key"] and seen["searched after a spill"], seen


@pytest.mark.parametrize("value", [float("nan"), -0.0])
def test_brute_force_orders_special_numbers_as_spark_does(
    spark: SparkSession, value: float
) -> None:
    others = [0.0, float("inf"), float("nan"), -1.0]
    df = spark.createDataFrame([(value, other) for other in others], "a DOUBLE, b DOUBLE")
    rows = df.selectExpr("a < b AS less", "a <= b AS upto").collect()
    assert [(r.less, r.upto) for r in rows] == [(_less(value, o), _upto(value, o)) for o in others]
