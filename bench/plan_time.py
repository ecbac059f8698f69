"""What the optimizer and the planner take: long chains of joins, and queries without any.

    make bench BENCH=plan-time            all queries, into bench/results/plan-time.json
    bench/plan_time.py --share 0.1        a tenth of the repetitions, printed only
    bench/plan_time.py --only chain-40    one query, printed only
    bench/plan_time.py --page             the tables in docs/, from the file

One JVM, two sessions: one as if we were not there, one with the extension. A query is parsed and
analyzed, which is not measured, then optimized and planned, which is. Nothing runs. The sessions
take turns, and every second time in the opposite order. What counts is the CPU time of the thread
that plans, as one per cent of milliseconds is less than what other processes make of the clock.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, sqrt
from pathlib import Path
from statistics import median
from typing import Any

from harness import facts, plan_page
from harness.plan_page import OURS, RESULTS, STOCK
from harness.queries import QUERIES, TABLES
from pyspark.sql import SparkSession
from summary import write_pages

import pyspark_skewext as skewext

EXTENSION = "io.github.skewext.SkewExtensions"
EXTENSIONS = "spark.sql.extensions"


@dataclass(frozen=True)
class Planned:
    """A query, how often it is planned, and what is hoped for."""

    name: str
    about: str
    sql: str
    repetitions: int
    #: Median of ours over stock, at most.
    goal: float


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
    Planned("chain-3", "3 tables, full outer, USING", chain(3), 150, 1.0),
    Planned("chain-8", "8 tables, the same", chain(8), 80, 1.0),
    Planned("chain-40", "40 tables, the same", chain(40), 12, 1.0),
    Planned("chain-40-inner", "40 tables, inner", chain(40, "INNER"), 12, 1.01),
    *(Planned(name, "no join", sql, 1500, 1.01) for name, sql in PLAIN.items()),
    *(Planned(name, "two to four joins", sql, 250, 1.01) for name, sql in QUERIES.items()),
)


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
            **{f"c{n}": f"k v{n}" for n in range(40)},
        }
        assert set(TABLES) <= set(columns)
        for name, listed in columns.items():
            items = ", ".join(
                f"'x' AS {c}" if c in ("category", "city") else f"id AS {c}" for c in listed.split()
            )
            frame = self.stock.range(1).selectExpr(*items.split(", "))
            frame.coalesce(1).write.parquet(str(home / f"{name}.parquet"))

    def plan(self, variant: str, sql: str) -> tuple[float, Any]:
        """CPU seconds for optimizing and planning, and the plan."""
        frame: Any = (self.ours if variant == OURS else self.stock).sql(sql)
        execution = frame._jdf.queryExecution()
        execution.analyzed()
        # All calls of a Python thread are done by one thread of the JVM.
        begin = self._clock.getCurrentThreadCpuTime()
        plan = execution.executedPlan()
        return (self._clock.getCurrentThreadCpuTime() - begin) / 1e9, plan


def measure(sessions: Sessions, planned: Planned, share: float) -> dict[str, Any]:
    """Plan a query again and again in both sessions."""
    repetitions = max(5, round(planned.repetitions * share))
    operators = {}
    for variant in (STOCK, OURS):
        for _ in range(max(3, repetitions // 5)):
            _, plan = sessions.plan(variant, planned.sql)
        operators[variant] = str(plan.toString()).count("MultiFullJoin")
    seconds: dict[str, list[float]] = {STOCK: [], OURS: []}
    gc.collect()
    for number in range(repetitions):
        for variant in (STOCK, OURS) if number % 2 else (OURS, STOCK):
            seconds[variant].append(sessions.plan(variant, planned.sql)[0])
    ratios = sorted(a / b for a, b in zip(seconds[OURS], seconds[STOCK]))
    # The bounds' places in a binomial distribution that is nearly normal.
    low = max(0, ceil((len(ratios) - 1.96 * sqrt(len(ratios))) / 2) - 1)
    figures = {
        variant: {
            "min_ms": round(1000 * min(took), 3),
            "median_ms": round(1000 * median(took), 3),
            "multi_full_joins": operators[variant],
        }
        for variant, took in seconds.items()
    }
    return {
        "query": planned.name,
        "about": planned.about,
        "repetitions": repetitions,
        **figures,
        "ratio": {
            "of_minima": round(min(seconds[OURS]) / min(seconds[STOCK]), 4),
            "median": round(median(ratios), 4),
            "low": round(ratios[low], 4),
            "high": round(ratios[-1 - low], 4),
        },
        "goal": planned.goal,
        "reached": round(median(ratios), 4) <= planned.goal,
    }


def main(arguments: Sequence[str]) -> int:
    """Measure, tell, and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--only", choices=[planned.name for planned in PLANNED])
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--page", action="store_true", help="write the tables into the pages")
    options = parser.parse_args(arguments)
    if options.page:
        write_pages(plan_page.pages(), plan_page.TOOL)
        return 0
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as home:
        sessions = Sessions(Path(home), options.heap)
        found = []
        for planned in PLANNED:
            if options.only in (None, planned.name):
                found.append(measure(sessions, planned, options.share))
                print(" | ".join(plan_page.rows(found[-1:])[1]), flush=True)
        versions = facts.versions(sessions.stock)
        sessions.stock.stop()
    if options.only is None and options.share >= 1:
        about = {"date": date.today().isoformat(), "machine": facts.machine(), "versions": versions}
        result = {**about, "heap": options.heap, "load_before": round(load, 2), "queries": found}
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        write_pages(plan_page.pages(), plan_page.TOOL)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
