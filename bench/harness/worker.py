"""A process with a Spark session that does what it is told, one line of JSON at a time.

Two sessions that differ in plugins and memory cannot live in one JVM; as two processes they take
turns, and the one that waits costs nothing but its memory.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from harness import data
from harness.case import Point
from harness.facts import Watch, versions
from harness.sessions import SessionSpec, start
from harness.technique_plans import FAMILY, technique_of
from harness.variants import (
    BUCKET_SKEW,
    BULK_ROWS,
    COUNTING,
    MARKING,
    MAX_BROADCAST,
    SKEW,
    SWITCH,
    VARIANTS,
    Variant,
    arranged,
    needed,
    shaped,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: Of 8,000,000 rows, and with fewer in proportion: what is split does not depend on the scale.
ADVISORY_BYTES = 4 * 2**20
THRESHOLD_BYTES = 8 * 2**20
#: Spark's default.
BROADCAST_BYTES = 10 * 2**20
#: Twice our default, so that the smaller table may be broadcast at full scale. Not in proportion:
#: what a broadcast takes is rounded up to pages of up to 64 MB.
MAX_BROADCAST_BYTES = 512 * 2**20
SCALE_ROWS = 8_000_000

SCAN_TO_FILTER = "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold"
SCAN_OF_FILTER = "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold"


class Worker:
    """The commands."""

    def __init__(self, spec: SessionSpec) -> None:
        self._cache = Path(spec.cache)
        self._fixed = spec.conf
        self._spark: SparkSession = start(spec)
        self._tables: dict[tuple[str, int, int], list[DataFrame]] = {}

    def versions(self) -> dict[str, str]:
        """Tell what the session is made of."""
        return versions(self._spark)

    def generate(self, kind: str, rows: int, table: int) -> dict[str, str]:
        """Make one table."""
        data.generate(self._spark, self._cache, kind, rows, table)
        return {}

    def run(self, variant: str, point: dict[str, Any], rows: int) -> dict[str, Any]:
        """Run a variant into a sink that takes everything and keeps nothing."""
        chosen, where = self._prepare(variant, point, rows)
        tables = self._read(where, rows)
        # Garbage of the variant before is not this one's; also deletes its shuffle files.
        jvm: Any = self._spark._jvm
        jvm.java.lang.System.gc()
        time.sleep(0.2)
        watch = Watch(self._spark)
        begin = time.perf_counter()
        for frame in self._frames(chosen, tables, where):
            frame.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - begin
        about = technique_of(frame) if chosen.family == FAMILY else {}
        return {"seconds": seconds, **watch.facts(), **about}

    def check(self, variant: str, point: dict[str, Any], rows: int) -> dict[str, Any]:
        """Number of rows and a checksum that does not depend on their order.

        Hashing skips nulls, so whether a column is null is hashed beside the columns.
        """
        chosen, where = self._prepare(variant, point, rows)
        (frame,) = self._frames(chosen, self._read(where, rows), where)
        columns = [frame[name] for name in sorted(frame.columns)]
        digest = F.xxhash64(*columns, *(column.isNull() for column in columns))
        total = F.sum(digest.cast("decimal(38,0)"))
        begin = time.perf_counter()
        (found,) = frame.agg(F.count("*").alias("rows"), total.alias("checksum")).collect()
        seconds = time.perf_counter() - begin
        if where.shape == "count":
            # The one row is the count: that is what a reader wants to see.
            (counted,) = frame.collect()
            return {"rows": counted[0], "checksum": str(found.checksum), "seconds": seconds}
        return {"rows": found.rows, "checksum": str(found.checksum), "seconds": seconds}

    def alternate(
        self, variants: list[str], point: dict[str, Any], rows: int, rounds: int
    ) -> dict[str, Any]:
        """Run variants in turns, one right after the other, from the text of the query on.

        Seconds and, where the system tells, CPU seconds of the JVM for each variant and round.
        """
        session: Any = self._spark
        process = Path(f"/proc/{session.sparkContext._gateway.proc.pid}/stat")
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        cpu: dict[str, list[float]] = {name: [] for name in variants}
        tables = self._read(Point(**point), rows)
        session._jvm.java.lang.System.gc()
        for number in range(rounds):
            # Each follows each other one, and is first, middle and last, equally often.
            shift = number // 2 % len(variants)
            order = variants[shift:] + variants[:shift]
            for name in order[:: -1 if number % 2 else 1]:
                chosen, where = self._prepare(name, point, rows)
                before = process_cpu(process)
                begin = time.perf_counter()
                for frame in self._frames(chosen, tables, where):
                    frame.write.format("noop").mode("overwrite").save()
                seconds[name].append(round(time.perf_counter() - begin, 4))
                cpu[name].append(round(process_cpu(process) - before, 2))
        total = sum(map(sum, seconds.values()))
        return {"each": seconds, "cpu": cpu, "seconds": total}

    def driver_cpu(self, tasks: int) -> dict[str, Any]:
        """CPU time of the driver's busiest thread for a job of so many tasks that do nothing.

        However many threads the driver has, no more tasks start than that one can see to. It is
        the driver's alone if the executors are other processes.
        """
        session: Any = self._spark
        threads = Path(f"/proc/{session.sparkContext._gateway.proc.pid}/task")
        before = cpu_seconds(threads)
        session._jsc.sc().range(0, tasks, 1, tasks).count()
        after = cpu_seconds(threads)
        spent = {key: after[key] - before.get(key, 0.0) for key in after}
        (_, name), seconds = max(spent.items(), key=lambda item: item[1])
        return {"seconds": seconds, "thread": name}

    def _prepare(self, variant: str, point: dict[str, Any], rows: int) -> tuple[Variant, Point]:
        chosen, where = VARIANTS[variant], Point(**point)
        settings = {
            "spark.sql.shuffle.partitions": str(where.partitions),
            "spark.sql.adaptive.coalescePartitions.enabled": str(where.coalesce).lower(),
            # Spark makes filters of keys for scans of 10 GB and more, of inputs of up to 10 MB
            # before their conditions, and so do we.
            SCAN_TO_FILTER: "1b" if where.few else "10GB",
            SCAN_OF_FILTER: "10GB" if where.few else "10MB",
            SWITCH: "true",
            BULK_ROWS: "true",
            SKEW: "true",
            MARKING: "true",
            # By default, keys of Spark's own joins are not counted.
            COUNTING: str(where.skewed_in_rows).lower(),
            BUCKET_SKEW: "true",
            # Without these two, Spark does not believe that a bucket's one file is in order.
            "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
            "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
            **(_skew_settings(rows) if where.skewed else {}),
            **_broadcast_settings(rows if where.broadcasts else 0),
            **chosen.conf,
        }
        # What the variant before has set besides.
        others = {key for v in VARIANTS.values() for key in v.conf}
        for key in others - settings.keys() - self._fixed.keys():
            self._spark.conf.unset(key)
        for key, value in settings.items():
            if key not in self._fixed:
                self._spark.conf.set(key, value)
        return chosen, where

    def close(self) -> None:
        """Let Spark tidy up, and wait for it."""
        self._spark.stop()

    def _read(self, point: Point, rows: int) -> list[DataFrame]:
        key = (point.kind, rows, point.tables)
        if key not in self._tables:
            self._tables[key] = data.read(self._spark, self._cache, *key)
        return self._tables[key]

    def _frames(self, variant: Variant, tables: list[DataFrame], point: Point) -> list[DataFrame]:
        keys = data.keys_of(point.kind)
        if variant.build is not None:
            joined = variant.build(arranged(tables, point), keys, point)
            return [shaped(joined, tables, point)]
        inputs = needed(tables, point)
        if variant.name == "floor":
            # No number of partitions given: adaptive execution treats it as a join's exchange.
            return [table.repartition(*keys) for table in inputs]
        return inputs


def _skew_settings(rows: int) -> dict[str, str]:
    share = rows / SCALE_ROWS
    skew_join = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
    return {
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": f"{round(ADVISORY_BYTES * share)}b",
        skew_join: f"{round(THRESHOLD_BYTES * share)}b",
    }


def _broadcast_settings(rows: int) -> dict[str, str]:
    """As by default with as many rows as at full scale; without rows, nothing is broadcast."""
    limit = round(BROADCAST_BYTES * rows / SCALE_ROWS)
    return {
        "spark.sql.autoBroadcastJoinThreshold": f"{limit or -1}b",
        MAX_BROADCAST: f"{MAX_BROADCAST_BYTES}b",
    }


def process_cpu(stat: Path) -> float:
    """CPU seconds of a process with all of its threads; 0 where there is no proc(5)."""
    try:
        fields = stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


#: Threads of the JVM itself, and of those whom nobody waits for.
_BESIDE = ("C1 ", "C2 ", "GC ", "G1 ", "VM ", "spark-listener")


def cpu_seconds(threads: Path) -> dict[tuple[str, str], float]:
    """CPU seconds by number and name of thread, in user and in kernel mode; see proc(5)."""
    found = {}
    for thread in threads.iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            head, rest = (thread / "stat").read_text(encoding="utf-8").rsplit(")", 1)
            name, fields = head.split("(", 1)[1], rest.split()
            if not name.startswith(_BESIDE):
                ticks = int(fields[11]) + int(fields[12])
                found[thread.name, name] = ticks / os.sysconf("SC_CLK_TCK")
    return found


def _explain(error: Exception) -> str:
    """Say what went wrong in a line; Spark's messages go on for pages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [
        line for line in lines if "OutOfMemory" in line or "Caused by" in line or "error:" in line
    ]
    first = lines[0] if lines else ""
    return f"{type(error).__name__}: {(telling or [first])[-1][:300]}"


def main() -> None:
    """Read commands from the standard input, write answers to the original standard output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Whatever the JVM prints goes to the log.
    os.dup2(2, 1)

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    worker = Worker(SessionSpec(**json.loads(sys.stdin.readline())))
    answer({"ready": True})
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer({"ok": getattr(worker, command.pop("command"))(**command)})
        except AnalysisException as error:
            # By Spark's analyzer, or by us: nothing is out of order afterwards.
            answer({"refused": str(error).splitlines()[0]})
        except Exception as error:
            print(error, file=sys.stderr, flush=True)
            answer({"error": _explain(error)})
    worker.close()


if __name__ == "__main__":
    main()
