"""The command line: any number of random queries, or the results of several runs as one."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from stock import QUICK_JVM

import pyspark_skewext as skewext
from random_sql.coverage import Coverage, merged
from random_sql.engines import Engines
from random_sql.found import Found
from random_sql.hunt import Plan, hunt
from random_sql.lakehouse import lakehouse


def main(arguments: list[str]) -> int:
    """Run them; 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(prog="random_sql", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="(random)")
    parser.add_argument("--count", type=int, default=2000, help="of queries (2000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first one (0)")
    parser.add_argument("--minutes", type=float, help="in place of --count")
    parser.add_argument("--failures", type=int, default=3, help="after which to stop (3)")
    parser.add_argument("--lakehouse", action="store_true", help="tables of Delta and Iceberg too")
    parser.add_argument(
        "--stock", type=float, default=1.0, help="share that stock Spark runs, too (1.0)"
    )
    parser.add_argument(
        "--asof", type=float, default=0.0, help="share that reads an as-of join or latest rows (0)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="for the counters")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE", help="add up such files")
    options = parser.parse_args(arguments)
    if options.merge:
        _print(merged(options.merge), options.json)
        return 0
    os.environ["PYSPARK_PYTHON"] = sys.executable
    plan = Plan(
        options.seed,
        10**9 if options.minutes else options.count,
        options.first,
        lakehouse=options.lakehouse,
        stock=options.stock,
        asof=options.asof,
        failures=options.failures,
        seconds=60 * (options.minutes or float("inf")),
    )

    def tell(text: str) -> None:
        print(text, flush=True)

    tell(f"--seed {options.seed} --first {options.first} --count {plan.count}")
    with tempfile.TemporaryDirectory() as home:
        spark = _session(Path(home), options.lakehouse)
        engines = Engines(spark, Path(home))
        found, version = Found(), spark.version
        try:
            hunt(engines, plan, tell, found)
        finally:
            # What ran counts, however the run ends.
            tell(str(found))
            _print(found.to_dict(version, options.seed), options.json)
        engines.close()
        spark.stop()
    return 1 if found.failures else 0


def _print(result: dict[str, object], file: Path | None) -> None:
    """The counters as a table, and all of it to the file."""
    coverage = result["coverage"]
    assert isinstance(coverage, dict)
    print(Coverage.from_dict(coverage).table(), flush=True)
    if file is not None:
        file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


def _session(home: Path, with_lakehouse: bool) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("random queries")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.memory", "1g")
        .config("spark.memory.offHeap.size", "64m")
        .config("spark.default.parallelism", 1)
        .config("spark.sql.autoBroadcastJoinThreshold", -1)
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.sql.ui.explainMode", "simple")
        .config("spark.sql.ui.retainedExecutions", 20)
        .config("spark.ui.retainedJobs", 50)
        .config("spark.ui.retainedStages", 50)
        .config("spark.ui.retainedTasks", 500)
        # Much of the code runs only some thousand times.
        .config("spark.driver.extraJavaOptions", " ".join(QUICK_JVM))
    )
    if with_lakehouse:
        builder = lakehouse(builder, home)
    spark = skewext.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
