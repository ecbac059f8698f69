"""Making queries, asking all three, and telling what is wrong."""

from __future__ import annotations

import random as chance
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import duckdb
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from stock import INTERPRETED

from random_sql.engines import ANSI, Engines, Rows, values
from random_sql.generate import Generator
from random_sql.reduce import Example, reduced
from random_sql.tables import make_tables
from random_sql.tree import DUCK, SPARK, statements

#: Queries over the same tables.
BATCH = 12
#: Larger answers are not compared.
MOST_ROWS = 3000
#: Examples that are tried to make a failing one small.
TRIES = 400

#: How often it is told how far it has come.
TELL_SECONDS = 20

REWRITE = "spark.skewext.multiJoin.rewrite"


@dataclass
class Found:
    """What came of a run."""

    compared: int = 0
    #: Queries with at least one join of ours, and how many inputs all of these had.
    rewritten: int = 0
    inputs: Counter[int] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    #: Queries in which partitions were split.
    split: int = 0
    rows: int = 0
    seconds: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        many = ", ".join(f"{n} inputs: {times}" for n, times in sorted(self.inputs.items()))
        left = ", ".join(f"{times} {why}" for why, times in self.skipped.items()) or "none"
        spent = ", ".join(f"{who} {took:.0f} s" for who, took in self.seconds.items())
        return (
            f"{self.compared} queries compared, {self.rows} rows; rewritten: {self.rewritten} "
            f"({many or 'none'}), split: {self.split}; left out: {left}; {spent}; "
            f"{len(self.failures)} wrong"
        )


def random_settings(random: chance.Random) -> dict[str, str]:
    """How Spark runs with the extension: the rewrite is forced, the rest is left to chance."""

    def one_in(n: int) -> str:
        return str(random.randrange(n) == 0).lower()

    found = {
        f"{REWRITE}.minInputs": "2" if random.random() < 0.85 else "3",
        f"{REWRITE}.mixed.enabled": one_in(2),
        "spark.sql.adaptive.enabled": one_in(4),
        "spark.sql.shuffle.partitions": "2",
    }
    if random.random() < 0.85:
        found.update(INTERPRETED)
    if random.random() < 0.15:
        found["spark.sql.autoBroadcastJoinThreshold"] = "10MB"
    if random.random() < 0.1:
        found["spark.skewext.multiJoin.grouping"] = "sort"
    if random.random() < 0.1:
        found["spark.skewext.multiJoin.order"] = "natural"
    if random.random() < 0.1:
        found["spark.sql.cbo.enabled"] = "true"
    if random.random() < 0.3:
        found[ANSI] = "true"
    if random.random() < 0.3:
        found.update(_splitting(random))
    return found


def _splitting(random: chance.Random) -> dict[str, str]:
    """What makes a few dozen rows of a key a skewed partition, read from several files."""
    skew = "spark.sql.adaptive.skewJoin"
    return {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.shuffle.partitions": str(random.randint(2, 3)),
        "spark.sql.files.maxPartitionBytes": "4000",
        "spark.sql.files.openCostInBytes": "1",
        f"{skew}.skewedPartitionThresholdInBytes": "200b",
        f"{skew}.skewedPartitionFactor": "1.2",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "200b",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.skewext.skew.minGain": "1.0",
        "spark.skewext.skew.maxRereadFactor": "50",
        "spark.skewext.skew.output.sparkJoins.enabled": random.choice(("true", "false")),
    }


def hunt(
    engines: Engines,
    seed: int,
    count: int,
    most_failures: int = 1,
    tell: Callable[[str], None] = lambda _: None,
    seconds: float = float("inf"),
    first: int = 0,
) -> Found:
    """Ask queries up to `count`, which the seed decides on; ends early after failures, or time."""
    found = Found()
    begin = told = time.monotonic()
    for number, (example, label) in enumerate(examples(engines, seed, count, first), 1):
        fault = _compare(engines, example, found)
        if fault is not None:
            tell(f"{label}: {fault}; making it smaller")
            small = reduced(example, partial(_fails_so, engines, fault), TRIES)
            found.failures.append(f"{label}: {fault}\n{report(engines, small)}")
            tell(found.failures[-1])
            if len(found.failures) >= most_failures:
                break
            engines.load(example.tables)
        now = time.monotonic()
        if now - told > TELL_SECONDS:
            tell(f"{number}: {found}")
            told = now
        if now - begin > seconds:
            break
    return found


def examples(
    engines: Engines, seed: int, count: int, first: int = 0
) -> Iterator[tuple[Example, str]]:
    """The examples of a seed, from a number on; their tables are loaded."""
    for batch in range(first // BATCH, -(-count // BATCH)):
        random = chance.Random(f"{seed} {batch}")
        tables = tuple(make_tables(random))
        engines.load(tables)
        generator = Generator(random, tables)
        for number in range(min(BATCH, count - batch * BATCH)):
            query = generator.query()
            example = Example(query, tables, random_settings(random))
            if batch * BATCH + number >= first:
                yield example, f"seed {seed}, query {batch * BATCH + number}"


def _compare(engines: Engines, example: Example, found: Found) -> str | None:
    """None, or what is wrong."""
    try:
        begin = time.perf_counter()
        truth = engines.duck(example.query, MOST_ROWS)
    except duckdb.Error as error:
        found.skipped[f"not for DuckDB ({str(error).splitlines()[0][:60]})"] += 1
        return None
    found.seconds["DuckDB"] += time.perf_counter() - begin
    if truth is None:
        found.skipped["too large"] += 1
        return None
    begin = time.perf_counter()
    try:
        stock = engines.stock(example.query, example.settings)
    except (PySparkException, Py4JJavaError) as error:
        found.skipped[f"not for Spark ({str(error).splitlines()[0][:60]})"] += 1
        return None
    found.seconds["stock"] += time.perf_counter() - begin
    begin = time.perf_counter()
    try:
        ours, joins, splits = engines.spark(example.query, example.settings)
    except Exception as error:
        if _fails_anyway(engines, example):
            found.skipped["not for Spark, as the tables are stored"] += 1
            return None
        return f"fails with the extension: {type(error).__name__}"
    found.seconds["ours"] += time.perf_counter() - begin
    found.compared += 1
    found.rows += sum(truth.values())
    found.rewritten += bool(joins)
    found.inputs.update(joins)
    found.split += bool(splits)
    if ours == stock != truth:
        found.skipped["of another answer in stock Spark than in DuckDB"] += 1
        return None
    if ours != stock and _differs_anyway(engines, example, ours):
        found.skipped["of another answer in stock Spark, by settings"] += 1
        return None
    return None if ours == stock else "another answer than Spark without the extension"


def _differs_anyway(engines: Engines, example: Example, ours: Rows) -> bool:
    """Whether Spark without the extension gives the same as with it, under the same settings."""
    off = {**example.settings, "spark.skewext.enabled": "false"}
    return engines.spark(example.query, off)[0] == ours


def _fails_anyway(engines: Engines, example: Example) -> bool:
    """Whether it is not the extension that fails.

    Spark mistakes columns that USING has hidden where a file or an RDD is joined with itself.
    """
    try:
        engines.spark(example.query, {**example.settings, "spark.skewext.enabled": "false"})
    except Exception:
        return True
    return False


def _fails_so(engines: Engines, fault: str, example: Example) -> bool:
    """Whether a smaller example is wrong in the same way."""
    engines.load(example.tables)
    again = Found()
    return _compare(engines, example, again) == fault


def report(engines: Engines, example: Example) -> str:
    """All that one needs to see it again, to be pasted into spark-sql and DuckDB."""
    lines = [f"SET {key}={value};" for key, value in sorted(example.settings.items())]
    for table in example.tables:
        stored = f" -- was stored as: {table.form}{', one partition' if table.whole else ''}"
        lines.append(f"CREATE OR REPLACE TEMPORARY VIEW {table.name} AS {values(table)};{stored}")
    spark, duck = statements(example.query, SPARK), statements(example.query, DUCK)
    lines += [f"{statement};" for statement in spark]
    if spark != duck:
        lines += ["-- for DuckDB:", *(f"{statement};" for statement in duck)]
    engines.load(example.tables)
    for who, answer in _answers(engines, example).items():
        lines.append(f"-- {who}: {answer}")
    return "\n".join(lines)


def _answers(engines: Engines, example: Example) -> Mapping[str, str]:
    """Each one's rows, or what it says instead."""

    def shown(rows: Rows | None) -> str:
        listed = sorted((rows or Counter()).items(), key=repr)
        return ", ".join(f"{times} x {row}" for row, times in listed) or "no rows"

    asked: dict[str, Callable[[], str]] = {
        "with the extension": lambda: shown(engines.spark(example.query, example.settings)[0]),
        "without": lambda: shown(engines.stock(example.query, example.settings)),
        "DuckDB": lambda: shown(engines.duck(example.query, MOST_ROWS)),
    }
    found = {}
    for who, ask in asked.items():
        try:
            found[who] = ask()
        except Exception as error:
            found[who] = f"{type(error).__name__}: {str(error).strip()[:500]}"
    return found
