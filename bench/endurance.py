"""The load that the driver bears: many tasks, many files, many queries in one session.

    bench/endurance.py tasks      heap, event log and time for many map tasks and partitions
    bench/endurance.py files      time to plan a join of tables with very many bucket files
    bench/endurance.py soak       heap, threads, blocks and files after many joins

Each runs with the extension on and off, in a session of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import summary
from harness.measure import progress
from harness.sessions import configured
from harness.ways import WAYS, answer, in_a_process

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Sessions of each way, whose smallest figures count; else one.
TURNS = {"tasks": 2}
Found = dict[str, Any]


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="bench/endurance.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("what", choices=list(TRIALS))
    add("--way", choices=WAYS, help="only this one, in this process; prints JSON")
    add("--maps", type=int, default=2000, help="tasks: map tasks of each of two inputs (2000)")
    add("--partitions", type=int, default=1000, help="tasks: of the shuffles (1000)")
    add("--files", type=int, default=100_000, help="files: of both tables together (100,000)")
    add("--joins", type=int, default=1000, help="soak: how many (1000)")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run one trial both ways."""
    options = parse(arguments)
    if options.way:
        with tempfile.TemporaryDirectory() as home:
            spark = _session(Path(home), options.way)
            try:
                answer(TRIALS[options.what](spark, Path(home), options))
            finally:
                spark.stop()
        return 0
    runs: dict[str, list[Found]] = {way: [] for way in WAYS}
    for _ in range(TURNS.get(options.what, 1)):
        for way in WAYS:
            found = in_a_process(__file__, *arguments, "--way", way, timeout=3600)
            progress(f"{way}: {found}")
            if found.pop("outcome") != "done":
                return 1
            runs[way].append(found)
    ways = {way: _least(found) for way, found in runs.items()}
    summary.keep("reliability-driver.json", **{options.what: ways})
    return 0


def _least(runs: list[Found]) -> Found:
    """The figures to which other work on the machine has added least."""
    return {
        name: min(run[name] for run in runs) if name.endswith(("seconds", "_mb")) else value
        for name, value in runs[0].items()
    }


def _session(home: Path, way: str) -> SparkSession:
    (home / "events").mkdir()
    settings = {
        "spark.driver.memory": "2g",
        # Not to measure what Spark keeps of finished queries.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (home / "events").as_uri(),
        "spark.local.dir": str(home / "local"),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.skewext.enabled": str(way == "on").lower(),
    }
    return configured("local[2]", settings)


# Many tasks


def _tasks(spark: SparkSession, home: Path, options: argparse.Namespace) -> Found:
    import pyspark_skewext as skewext

    spark.conf.set("spark.sql.shuffle.partitions", options.partitions)
    spark.range(10).count()
    before = _jvm_state(spark)["heap_mb"]

    def table(number: int) -> DataFrame:
        rows = spark.range(0, 20 * options.maps, 1, options.maps)
        return rows.selectExpr(f"(id * 7) % 10007 + {number} AS k", f"id AS v{number}")

    def seconds() -> float:
        begin = time.monotonic()
        joined = skewext.multi_full_join(table(0), table(1), on="k")
        # A count, as the product of duplicate keys is not to be measured.
        found.add(joined.groupBy().count().collect()[0][0])
        return round(time.monotonic() - begin, 1)

    found: set[int] = set()
    first = seconds()
    after = _jvm_state(spark)
    logs = sum(path.stat().st_size for path in (home / "events").rglob("*") if path.is_file())
    again = min(seconds(), seconds())
    (rows,) = found
    return {
        "maps": options.maps,
        "partitions": options.partitions,
        "rows": rows,
        "seconds": first,
        "again_seconds": again,
        "heap_before_mb": before,
        "heap_after_mb": after["heap_mb"],
        "peak_mb": after["peak_mb"],
        "event_log_mb": round(logs / 1e6, 1),
    }


# Many files


def _files(spark: SparkSession, home: Path, options: argparse.Namespace) -> Found:
    buckets = 200
    each = options.files // 2 // buckets
    names = ("left", "right")
    for name in names:
        writer = spark.range(10 * buckets).selectExpr("id AS k", f"id AS {name}_v").repartition(1)
        path = home / name
        writer.write.bucketBy(buckets, "k").sortBy("k").option("path", str(path)).saveAsTable(name)
        for file in list(path.glob("part-*.parquet")):
            for copy in range(1, each):
                os.link(file, path / file.name.replace("part-00000", f"part-{copy:05d}"))
        spark.sql(f"REFRESH TABLE {name}")
    seconds = []
    for _ in range(3):
        begin = time.monotonic()
        joined = spark.table("left").join(spark.table("right"), "k", "full")
        plan: Any = joined
        plan._jdf.queryExecution().executedPlan()
        seconds.append(time.monotonic() - begin)
    return {
        "files": 2 * buckets * each,
        "first_seconds": round(seconds[0], 2),
        "again_seconds": round(median(seconds[1:]), 2),
        "heap_mb": _jvm_state(spark)["heap_mb"],
    }


# Many queries


def _soak(spark: SparkSession, home: Path, options: argparse.Namespace) -> Found:
    import pyspark_skewext as skewext

    for key, value in {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "4k",
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.5",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4k",
        "spark.skewext.multiJoin.maxRowsInMemory": "500",
    }.items():
        spark.conf.set(key, value)

    def table(number: int, hot: int) -> DataFrame:
        rows = spark.range(0, 300 + hot, 1, 2)
        return rows.selectExpr(
            f"if(id >= 300, 7, id + {number}) AS k", f"concat('value ', id) AS s{number}"
        )

    salted = skewext.Salted(salts=3, hot_keys=[7])
    kinds = (None, "adaptive", salted, "broadcast_map", "iterative_broadcast")
    states = []
    begin = time.monotonic()
    for number in range(options.joins + 1):
        # Classes and caches of the first ones stay for all.
        if number in (options.joins // 10, options.joins):
            states.append(_state(spark, home))
        kind = kinds[number % len(kinds)]
        one, other = table(0, 1500), table(1, 0)
        if kind is None:
            joined = skewext.multi_full_join(one, other, table(2, 0), on="k")
        else:
            joined = skewext.skew_join(one, other, "k", "full", technique=kind)
        joined.write.format("noop").mode("overwrite").save()
    first, last = states
    seconds = round(time.monotonic() - begin, 1)
    return {"joins": options.joins, "seconds": seconds, "first": first, "last": last}


def _state(spark: SparkSession, home: Path) -> Found:
    # Spark's cleaner removes unreferenced blocks and files after a garbage collection.
    for _ in range(3):
        _collect_garbage(spark)
        time.sleep(1)
    context: Any = spark.sparkContext
    files = [path for path in (home / "local").rglob("*") if path.is_file()]
    storage = context._jsc.sc().env().blockManager().master().getStorageStatus()
    blocks = sum(storage[i].blocks().size() for i in range(len(storage)))
    return {**_jvm_state(spark), "blocks": blocks, "files": len(files)}


def _jvm_state(spark: SparkSession) -> Found:
    _collect_garbage(spark)
    management = _jvm(spark).java.lang.management.ManagementFactory
    pools = management.getMemoryPoolMXBeans()
    heap = [pool for pool in pools if str(pool.getType().name()) == "HEAP"]
    return {
        "heap_mb": round(management.getMemoryMXBean().getHeapMemoryUsage().getUsed() / 1e6, 1),
        "peak_mb": round(sum(pool.getPeakUsage().getUsed() for pool in heap) / 1e6, 1),
        "threads": management.getThreadMXBean().getThreadCount(),
    }


def _collect_garbage(spark: SparkSession) -> None:
    import gc

    # Python's objects hold the driver's.
    gc.collect()
    _jvm(spark).java.lang.System.gc()


def _jvm(spark: SparkSession) -> Any:
    session: Any = spark
    return session._jvm


TRIALS = {"tasks": _tasks, "files": _files, "soak": _soak}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
