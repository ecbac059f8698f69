"""What a job pays: the start of a session, its first queries, the driver's heap, output files.

    bench/job.py                 five processes of each way
    bench/job.py --processes 9   more

Processes with the extension and without it take turns. Each starts a session, counts rows without a
join, runs one join twice and writes joins to Parquet, none by a broadcast. All that a JVM loads and
compiles for the first time counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import summary
from harness import tpc, tpch_joins
from harness.alone import alone
from harness.job_report import rows
from harness.measure import progress
from harness.ways import WAYS, answer, in_a_process

import pyspark_skewext as skewext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
_FIRST = "join-6-columns"
_WRITTEN = ("join-all-columns", "join-two-keys", "join-left")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="bench/job.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--processes", type=int, default=5, help="of each way (5)")
    add("--scale", type=float, default=0.5, help="scale factor of TPC-H (0.5)")
    add("--heap", default="2g", help="of the driver (%(default)s)")
    add("--cache", type=Path, default=ROOT / ".cache" / "bench", help="for the tables")
    add("--timeout", type=float, default=600, help="seconds until a process is given up (600)")
    add("--keep", action="store_true", help="write to bench/results/job.json")
    add("--way", choices=WAYS, help="this one, in this process; prints JSON")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run the processes; 1 if one failed."""
    options = parse(arguments)
    data = options.cache.resolve() / "data" / f"tpch-sf{options.scale:g}"
    if options.way:
        with tempfile.TemporaryDirectory(dir=options.cache) as home:
            answer(_job(options, data, Path(home)))
        return 0
    with alone(options.cache) as is_alone:
        if not is_alone:
            return 2
        tpc.generate(tpc.TPCH, options.scale, data)
        found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for number in range(options.processes):
            for way in WAYS if number % 2 else reversed(WAYS):
                run = in_a_process(__file__, *arguments, "--way", way, timeout=options.timeout)
                progress(f"{way:4} {run}")
                found[way].append(run)
    failed = [run["outcome"] for runs in found.values() for run in runs if run["outcome"] != "done"]
    if failed:
        progress("\n".join(failed))
        return 1
    progress("\n".join(" | ".join(row) for row in rows(found)))
    if options.keep:
        summary.keep("job.json", runs=found)
    return 0


def _job(options: argparse.Namespace, data: Path, home: Path) -> dict[str, float]:
    """What one process pays."""
    found: dict[str, float] = {}

    def timed(name: str, run: Callable[[], object]) -> None:
        begin = time.monotonic()
        run()
        found[name] = round(time.monotonic() - begin, 3)

    session: list[SparkSession] = []
    timed("session, s", lambda: session.append(_session(options, home)))
    (spark,) = session
    for path in data.glob("*.parquet"):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
    joins = {each.name: each.sql.replace("{hint}", "") for each in tpch_joins.joins(data)}

    def write(name: str) -> None:
        spark.sql(joins[name]).write.format("noop").mode("overwrite").save()

    timed("first query, without a join, s", spark.table("lineitem").count)
    timed("first join, s", lambda: write(_FIRST))
    timed("the same join again, s", lambda: write(_FIRST))
    for name in _WRITTEN:
        files = home / name
        spark.sql(joins[name]).write.parquet(str(files))
        size = sum(path.stat().st_size for path in files.glob("*.parquet"))
        found[f"Parquet above {name}, MB"] = round(size / 1e6, 2)
    found["heap in use at the end, MB"] = _used_heap(spark)
    spark.stop()
    return found


def _session(options: argparse.Namespace, home: Path) -> SparkSession:
    """A session that has never heard of the extension, or one with its two settings."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("skewext benchmark")
    settings = {
        "spark.driver.memory": options.heap,
        "spark.local.dir": str(home),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    if options.way == "on":
        builder = skewext.configure(builder)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _used_heap(spark: SparkSession) -> float:
    """After a garbage collection."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return round((int(runtime.totalMemory()) - int(runtime.freeMemory())) / 1e6, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
