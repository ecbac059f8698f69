"""The time of the optimizer and the planner: long chains of joins, and queries without a join.

    make bench BENCH=plan-time            all queries, for docs/performance.md
    bench/plan_time.py --share 0.1        a tenth of the repetitions, printed only
    bench/plan_time.py --only chain-40    some queries, printed only
    bench/plan_time.py --only where-64 where-100
                                          large chains below a filter on the key, for the same page

One JVM has two sessions, without and with the extension. They take turns, every second time in
the opposite order. The tool measures the optimizer and the planner, but not the parser and the
analyzer, and runs no query. It measures CPU time of the planning thread: other processes disturb
the clock by more than one per cent.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import summary
from harness import facts
from harness.queries import QUERIES, TABLES
from harness.report import interval
from pyspark.sql import SparkSession

import pyspark_skewext as skewext

STOCK, OURS = "stock", "ours"
EXTENSION = "io.github.skewext.SkewExtensions"
EXTENSIONS = "spark.sql.extensions"


@dataclass(frozen=True)
class Planned:
    """A query, and how often it is planned."""

    name: str
    about: str
    sql: str
    repetitions: int


# The most tables of a chain.
_MOST = 100


def chain(tables: int, kind: str = "FULL") -> str:
    """All columns of so many tables, joined by USING."""
    joins = "".join(f" {kind} JOIN c{n} USING (k)" for n in range(1, tables))
    values = ", ".join(f"v{n}" for n in range(tables))
    return f"SELECT k, {values} FROM c0{joins}"


PLAIN = {
    "filter": "SELECT item, cents FROM sales WHERE day < 300 AND cents > 100",
    "group-by": """
        SELECT store, day, sum(cents) AS turnover, count(*) AS sold
        FROM sales WHERE customer > 10 GROUP BY store, day HAVING sum(cents) > 0
    """,
    "window": """
        SELECT item, turnover FROM (
          SELECT item, sum(cents) AS turnover,
            row_number() OVER (PARTITION BY item % 10 ORDER BY sum(cents) DESC) AS place
          FROM sales GROUP BY item)
        WHERE place <= 10 ORDER BY turnover LIMIT 100
    """,
    "union": """
        SELECT ticket, item, cents FROM sales WHERE store = 1
        UNION ALL SELECT ticket, item, -refund FROM returns WHERE refund > 5
    """,
}

PLANNED = (
    Planned("chain-3", "3 tables, full outer, USING", chain(3), 150),
    Planned("chain-8", "8 tables, the same", chain(8), 80),
    Planned("chain-40", "40 tables, the same", chain(40), 12),
    Planned("chain-40-inner", "40 tables, inner", chain(40, "INNER"), 12),
    *(Planned(name, "no join", sql, 1500) for name, sql in PLAIN.items()),
    *(Planned(name, "two to four joins", sql, 250) for name, sql in QUERIES.items()),
)


# With a filter on the merged key and on one value, Spark infers filters again and again.
FILTERED = tuple(
    Planned(
        f"where-{n}",
        f"{n} tables, full outer, filter on key and value",
        f"{chain(n)} WHERE k > 5 AND v1 > 3",
        5,
    )
    for n in (64, _MOST)
)

RESULTS = {"plan-time.json": PLANNED, "plan-time-where.json": FILTERED}


class Sessions:
    """Both sessions of a JVM, with the same tables."""

    def __init__(self, home: Path, heap: str) -> None:
        builder = (
            SparkSession.builder.master("local[1]")
            .appName("plan time")
            .config("spark.driver.memory", heap)
            .config("spark.driver.extraJavaOptions", f"-Xms{heap}")
            .config("spark.ui.enabled", False)
            .config("spark.ui.showConsoleProgress", False)
            .config("spark.jars", skewext.jar_path())
            .config("spark.sql.warehouse.dir", str(home / "warehouse"))
            .config("spark.sql.autoBroadcastJoinThreshold", -1)
        )
        self.stock = builder.getOrCreate()
        self.stock.sparkContext.setLogLevel("ERROR")
        session: Any = self.stock
        # A session reads the list of extensions when it is made, and only then.
        session._jsc.sc().conf().set(EXTENSIONS, EXTENSION)
        jvm = session._jvm
        made = jvm.SparkSession(session._jsc.sc(), jvm.java.util.HashMap())
        self.ours = SparkSession(self.stock.sparkContext, made)
        if skewext.is_enabled(self.stock) or not skewext.is_enabled(self.ours):
            raise RuntimeError("the sessions are not what they should be")
        self._clock = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        self._write(home)
        for each in (self.stock, self.ours):
            for path in sorted(home.glob("*.parquet")):
                each.read.parquet(str(path)).createOrReplaceTempView(path.stem)

    def _write(self, home: Path) -> None:
        """One row a table: what a table has in it changes no plan here."""
        columns = {
            "sales": "ticket item customer store day cents",
            "returns": "ticket item customer refund",
            "items": "item brand category",
            "customers": "customer region birth_year",
            "stores": "store city",
            **{f"c{n}": f"k v{n}" for n in range(_MOST)},
        }
        assert set(TABLES) <= set(columns)
        for name, listed in columns.items():
            items = ", ".join(
                f"'x' AS {c}" if c in ("category", "city") else f"id AS {c}" for c in listed.split()
            )
            frame = self.stock.range(1).selectExpr(*items.split(", "))
            frame.coalesce(1).write.parquet(str(home / f"{name}.parquet"))

    def plan(self, variant: str, sql: str) -> float:
        """CPU seconds for optimizing and planning."""
        frame: Any = (self.ours if variant == OURS else self.stock).sql(sql)
        execution = frame._jdf.queryExecution()
        execution.analyzed()
        # One thread of the JVM does all calls of a Python thread.
        begin = self._clock.getCurrentThreadCpuTime()
        execution.executedPlan()
        return float(self._clock.getCurrentThreadCpuTime() - begin) / 1e9


def measure(sessions: Sessions, planned: Planned, share: float) -> dict[str, Any]:
    """Plan a query again and again in both sessions."""
    repetitions = max(5, round(planned.repetitions * share))
    for variant in (STOCK, OURS):
        for _ in range(max(3, repetitions // 5)):
            sessions.plan(variant, planned.sql)
    seconds: dict[str, list[float]] = {STOCK: [], OURS: []}
    gc.collect()
    for number in range(repetitions):
        for variant in (STOCK, OURS) if number % 2 else (OURS, STOCK):
            seconds[variant].append(sessions.plan(variant, planned.sql))
    figures = {
        variant: {
            "min_ms": round(1000 * min(took), 3),
            "median_ms": round(1000 * median(took), 3),
        }
        for variant, took in seconds.items()
    }
    ratios = [a / b for a, b in zip(seconds[OURS], seconds[STOCK])]
    about = {"query": planned.name, "about": planned.about, "repetitions": repetitions}
    return {**about, **figures, "ratio": interval(ratios)}


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    names = [planned.name for queries in RESULTS.values() for planned in queries]
    parser.add_argument("--only", choices=names, nargs="+", default=names)
    parser.add_argument("--heap", default="2g")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        sessions = Sessions(Path(home), options.heap)
        found = {}
        for queries in RESULTS.values():
            for planned in queries:
                if planned.name in options.only:
                    found[planned.name] = measure(sessions, planned, options.share)
                    print(found[planned.name], flush=True)
        versions = facts.versions(sessions.stock)
        sessions.stock.stop()
    for file, queries in RESULTS.items():
        measured = [found[each.name] for each in queries if each.name in found]
        if len(measured) == len(queries) and options.share >= 1:
            summary.keep(file, versions=versions, queries=measured)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
