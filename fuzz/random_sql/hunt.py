"""Makes queries, runs them on all engines, and finds wrong answers."""

from __future__ import annotations

import random as chance
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import duckdb
import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from random_sql import coverage, forms, settings, surroundings
from random_sql.coverage import Tally
from random_sql.decks import Deck
from random_sql.engines import Answer, Engines
from random_sql.formats import LAKE_SINKS, LAKE_SOURCES
from random_sql.found import Found
from random_sql.generate import Generator
from random_sql.lakehouse import has
from random_sql.reduce import Example, reduced
from random_sql.report import report
from random_sql.scope import looks_of, tables_of
from random_sql.settings import PARQUET_BATCHES, random_settings
from random_sql.sinks import HAS_PANDAS, PANDAS_SINKS, PYTHON_SINKS, SINKS, Rows, agree
from random_sql.tables import Table, TableMaker

#: Queries over the same tables.
BATCH = 12
#: Larger answers are not compared.
MOST_ROWS = 3000
#: Examples that are tried to make a failing one small.
TRIES = 400

IS_SINCE_42 = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)

#: How often progress is printed.
TELL_SECONDS = 60


@dataclass(frozen=True)
class Plan:
    """Which queries are made: a seed, the first of them, how many, and what they may use."""

    seed: int
    count: int
    first: int = 0
    pandas: bool = HAS_PANDAS
    lakehouse: bool = False
    #: The share of queries that stock Spark runs even if DuckDB has the same answer.
    stock: float = 1.0
    #: The share of queries that read an as-of join or latest rows, beside those by chance.
    asof: float = 0.0
    #: Ends after so many wrong answers, or after this time.
    failures: int = 1
    seconds: float = float("inf")

    @property
    def forms(self) -> dict[str, int]:
        """Where tables are stored, other than with Spark alone."""
        pandas = forms.PANDAS_FORMS if self.pandas else {}
        return {**pandas, **self._of_lakehouse(LAKE_SOURCES)}

    @property
    def sinks(self) -> dict[str, int]:
        """All sinks there are."""
        pandas = PANDAS_SINKS if self.pandas else {}
        return {**SINKS, **pandas, **self._of_lakehouse(LAKE_SINKS)}

    def _of_lakehouse(self, kinds: Mapping[str, int]) -> dict[str, int]:
        return {kind: often for kind, often in kinds.items() if self.lakehouse and has(kind)}


def hunt(
    engines: Engines,
    plan: Plan,
    tell: Callable[[str], None] = lambda _: None,
    found: Found | None = None,
) -> Found:
    """Run the queries of a plan; ends early after failures, or time. Returns the counts given."""
    found = found or Found()
    begin = told = time.monotonic()
    for number, (example, label) in enumerate(examples(engines, plan, found), 1):
        before, found.error = Counter(found.skipped), ""
        stock = chance.Random(label).random() < plan.stock
        fault = _compare(engines, example, found, stock)
        for why in found.skipped - before:
            tell(f"{label}: {why}")
        if fault is not None:
            tell(f"{label}: {fault} {found.error}; making it smaller")
            small = reduced(example, partial(_fails_so, engines, fault), TRIES)
            found.failures.append(f"{label}: {fault}\n{report(engines, small, MOST_ROWS)}")
            tell(found.failures[-1])
            if len(found.failures) >= plan.failures:
                break
            engines.load(example.tables)
        now = time.monotonic()
        if now - told > TELL_SECONDS:
            tell(f"{number}: {found}")
            told = now
        if now - begin > plan.seconds:
            break
    return found


def examples(
    engines: Engines, plan: Plan, found: Found | None = None
) -> Iterator[tuple[Example, str]]:
    """The examples of a plan; their tables are loaded."""
    maker = TableMaker(plan.seed, plan.forms)
    sinks = Deck(f"{plan.seed} sinks", plan.sinks)
    last = plan.first + plan.count
    for batch in range(plan.first // BATCH, -(-last // BATCH)):
        random = chance.Random(f"{plan.seed} {batch}")
        tables = tuple(maker.tables(random, batch))
        begin = time.perf_counter()
        engines.load(tables)
        if found is not None:
            found.seconds["tables"] += time.perf_counter() - begin
        generator = Generator(random, tables, plan.asof)
        for number in range(batch * BATCH, min(batch * BATCH + BATCH, last)):
            query = generator.query()
            example = _possible(Example(query, tables, random_settings(random), sinks.card(number)))
            if number >= plan.first:
                extra = " --lakehouse" if plan.lakehouse else ""
                extra += f" --asof {plan.asof}" if plan.asof else ""
                yield example, f"--seed {plan.seed} --first {number} --count 1{extra}"


def _tables_read(example: Example) -> list[Table]:
    names = tables_of(example.query)
    return [table for table in example.tables if table.name in names]


def _possible(example: Example) -> Example:
    """The example, changed where stock Spark itself would fail or hang."""
    tables = _tables_read(example)
    # Since 4.2 two Python functions in one task can hang.
    if (
        IS_SINCE_42
        and example.sink in PYTHON_SINKS
        and any("python udf" in t.layers or t.form in forms.PANDAS_FORMS for t in tables)
    ):
        example = replace(example, sink="collect")
    # A cache that was planned for batches of a file, and is filled when there are none.
    if any(layer in forms.CACHES for table in tables for layer in table.layers):
        settings = {k: v for k, v in example.settings.items() if k != PARQUET_BATCHES}
        example = replace(example, settings=settings)
    return example


def kinds_of(
    example: Example, answer: Answer | None = None
) -> Mapping[str, Sequence[str] | set[str] | frozenset[str]]:
    """The kinds of a query, by dimension."""
    tables = _tables_read(example)
    found = {
        coverage.SOURCES: {kind for t in tables for kind in forms.kinds(t.form, t.layers)},
        coverage.NESTED: looks_of(example.query),
        coverage.SURROUNDINGS: surroundings.kinds_of(example.query),
        coverage.SINKS: {example.sink},
        coverage.SETTINGS: settings.kinds_of(example.settings),
    }
    if answer is not None:
        found[coverage.FUNCTIONS] = set(answer.functions)
        found[coverage.OPERATORS] = set(answer.operators)
    return found


def _compare(engines: Engines, example: Example, found: Found, stock: bool = True) -> str | None:
    """None, or what is wrong; without stock Spark only if DuckDB has the same answer."""
    try:
        with found.timed("DuckDB"):
            truth = engines.duck(example.query, MOST_ROWS)
    except duckdb.Error as error:
        found.skipped[f"not for DuckDB ({_first_line(error)})"] += 1
        return None
    if truth is None:
        found.skipped["too large"] += 1
        return None
    engines.failed_rules()
    try:
        with found.timed("ours"):
            answer = engines.spark(example, example.settings)
    except Exception as error:
        if _fails_anyway(engines, example):
            found.skipped[f"not for Spark ({_first_line(error)})"] += 1
            return None
        found.error = _first_line(error)
        found.coverage.count(kinds_of(example), Tally(1, wrong=1))
        return f"fails with the extension: {type(error).__name__}"
    failed = engines.failed_rules()
    fault = None
    if stock or not agree(example.sink, answer.rows, truth):
        fault = _fault(engines, example, answer, truth, found)
    fault = fault or "; ".join(failed) or None
    found.add(answer, sum(truth.values()))
    tally = Tally(1, int(answer.rewritten), int(answer.split), int(fault is not None))
    found.coverage.count(kinds_of(example, answer), tally)
    return fault


def _fault(
    engines: Engines, example: Example, answer: Answer, truth: Rows, found: Found
) -> str | None:
    try:
        with found.timed("stock"):
            stock = engines.stock(example.query, example.settings)
    except (PySparkException, Py4JJavaError) as error:
        found.skipped[f"not for stock Spark ({_first_line(error)})"] += 1
        return None
    found.stock += 1
    if agree(example.sink, answer.rows, stock):
        if not agree(example.sink, answer.rows, truth):
            found.skipped["of another answer in stock Spark than in DuckDB"] += 1
        return None
    if _differs_anyway(engines, example, answer.rows, stock):
        found.skipped["of another answer in stock Spark, by settings or sources"] += 1
        return None
    return "another answer than Spark without the extension"


def _first_line(error: Exception) -> str:
    text = str(error)
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.toString())
    return text.strip().split("\n")[0][:100]


def _off(example: Example) -> dict[str, str]:
    return {**example.settings, settings.ENABLED: "false"}


def _differs_anyway(engines: Engines, example: Example, ours: Rows, stock: Rows) -> bool:
    """Whether Spark without the extension gives the same as with it, under the same settings."""
    off = engines.spark(example, _off(example)).rows
    # Each run of a limit may leave other rows.
    return off == ours or (example.sink == "limit" and not agree("limit", off, stock))


def _fails_anyway(engines: Engines, example: Example) -> bool:
    """Whether it is not the extension that fails.

    Spark mistakes columns that USING has hidden where a file or an RDD is joined with itself. The
    plan of a cache may fail only the first time it runs, or only after another query has run it. So
    the tables are tried as they are, and made again.
    """
    for made_again in (False, True):
        if made_again:
            engines.reload()
        try:
            engines.spark(example, _off(example))
        except Exception:
            return True
    return False


def _fails_so(engines: Engines, fault: str, example: Example) -> bool:
    """Whether a smaller example is wrong in the same way."""
    engines.load(example.tables)
    return _compare(engines, example, Found()) == fault
