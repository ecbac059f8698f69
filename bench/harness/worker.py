"""The commands that run inside the process of a session."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from harness import data, facts
from harness.case import Point
from harness.other import OtherEngine
from harness.sessions import SessionSpec
from harness.variants import (
    MAX_BROADCAST,
    OUTPUT_SKEW,
    SWITCH,
    TECHNIQUE,
    VARIANTS,
    Variant,
    frames,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Json = dict[str, Any]

#: For 8,000,000 rows, and in proportion for fewer: the same partitions are split at every scale.
ADVISORY_BYTES = 4 * 2**20
THRESHOLD_BYTES = 8 * 2**20
SCALE_ROWS = 8_000_000
#: Spark's default.
BROADCAST_BYTES = 10 * 2**20
#: Twice our default, so that the smaller table may be broadcast in a full run. Not in proportion:
#: a broadcast takes pages of up to 64 MB.
MAX_BROADCAST_BYTES = 512 * 2**20

_BLOOM = "spark.sql.optimizer.runtime.bloomFilter"
_SKEW_JOIN = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"


class Session:
    """The session of this process."""

    spec: SessionSpec
    spark: SparkSession
    tables: dict[tuple[str, int, int], list[DataFrame]]


def start(spec: SessionSpec) -> None:
    """Start the session of this process; messages of the JVM go to the log."""
    log = spec.cache / "logs" / f"{spec.kind}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as opened:
        for descriptor in (1, 2):
            os.dup2(opened.fileno(), descriptor)
    Session.spec, Session.spark, Session.tables = spec, spec.start(), {}


def versions() -> dict[str, str]:
    """What the session consists of."""
    return facts.versions(Session.spark)


def generate(kind: str, rows: int, table: int) -> None:
    """Make one table."""
    data.generate(Session.spark, Session.spec.cache, kind, rows, table)


def reported(command: Callable[[], Json]) -> Json:
    """The command, with its errors as text: those of Spark do not survive pickling."""
    try:
        return command()
    except AnalysisException as error:
        return {"refused": str(error).splitlines()[0]}
    except Exception as error:
        print(error, file=sys.stderr, flush=True)
        return {"failed": _in_a_line(error)}


def run(variant: str, point: Point, rows: int) -> Json:
    """Run a variant into Spark's `noop` sink."""
    return reported(lambda: _run(VARIANTS[variant], point, rows))


def _run(variant: Variant, point: Point, rows: int) -> Json:
    spark = Session.spark
    tables = _prepare(variant, point, rows)
    # Garbage of the variant before is not this one's; this also deletes its shuffle files.
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    time.sleep(0.2)
    if isinstance(variant.build, OtherEngine):
        spec, keys = Session.spec, data.keys_of(point.kind)
        seconds = variant.build.seconds(tables, keys, spec.cores, spec.heap)
        return {"seconds": seconds, "stages": [], "operators": {}}
    watch, before = facts.Watch(spark), cpu_seconds(process())
    begin = time.perf_counter()
    for frame in frames(variant, tables, point):
        frame.write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - begin
    cpu = cpu_seconds(process()) - before
    about = facts.technique_of(frame) if variant.family == TECHNIQUE else {}
    return {"seconds": seconds, "cpu_seconds": round(cpu, 2), **watch.facts(), **about}


def check(variant: str, point: Point, rows: int) -> Json:
    """Number of rows, and a checksum that does not depend on their order."""
    return reported(lambda: _check(VARIANTS[variant], point, rows))


def _check(variant: Variant, point: Point, rows: int) -> Json:
    (frame,) = frames(variant, _prepare(variant, point, rows), point)
    columns = [frame[name] for name in sorted(frame.columns)]
    # xxhash64 skips nulls, so the digest includes whether each column is null.
    digest = F.xxhash64(*columns, *(column.isNull() for column in columns))
    total = F.sum(digest.cast("decimal(38,0)"))
    begin = time.perf_counter()
    (found,) = frame.agg(F.count("*").alias("rows"), total.alias("checksum")).collect()
    seconds = time.perf_counter() - begin
    return {"rows": found.rows, "checksum": str(found.checksum), "seconds": seconds}


def alternate(variants: list[str], point: Point, rows: int, rounds: int) -> Json:
    """Run variants in turns, one right after the other, including the parsing of the query.

    Returns seconds and, on Linux, CPU seconds of the JVM for each variant and round.
    """
    session: Any = Session.spark
    stat = process()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    cpu: dict[str, list[float]] = {name: [] for name in variants}
    session._jvm.java.lang.System.gc()
    for number in range(rounds):
        # Each follows each other one, and is first, middle and last, equally often.
        shift = number // 2 % len(variants)
        order = variants[shift:] + variants[:shift]
        for name in order[:: -1 if number % 2 else 1]:
            tables = _prepare(VARIANTS[name], point, rows)
            before = cpu_seconds(stat)
            begin = time.perf_counter()
            for frame in frames(VARIANTS[name], tables, point):
                frame.write.format("noop").mode("overwrite").save()
            seconds[name].append(round(time.perf_counter() - begin, 4))
            cpu[name].append(round(cpu_seconds(stat) - before, 2))
    return {"seconds": seconds, "cpu_seconds": cpu}


def _prepare(variant: Variant, point: Point, rows: int) -> list[DataFrame]:
    """Set what the variant and the point need, and open the tables."""
    share = rows / SCALE_ROWS
    settings = {
        "spark.sql.shuffle.partitions": str(point.partitions),
        "spark.sql.adaptive.coalescePartitions.enabled": str(point.coalesce).lower(),
        # Run-time filters are for scans of 10 GB and more, and for inputs of up to 10 MB.
        f"{_BLOOM}.applicationSideScanSizeThreshold": "1b" if point.few else "10GB",
        f"{_BLOOM}.creationSideThreshold": "10GB" if point.few else "10MB",
        SWITCH: "true",
        OUTPUT_SKEW: "all" if point.skewed_in_rows else "multiJoin",
        MAX_BROADCAST: f"{MAX_BROADCAST_BYTES}b",
        # Without these two, Spark sorts the one sorted file of each bucket again.
        "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
        "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": (
            f"{round(BROADCAST_BYTES * share)}b" if point.broadcasts else "-1"
        ),
    }
    if point.skewed:
        settings["spark.sql.adaptive.advisoryPartitionSizeInBytes"] = (
            f"{round(ADVISORY_BYTES * share)}b"
        )
        settings[_SKEW_JOIN] = f"{round(THRESHOLD_BYTES * share)}b"
    settings.update(variant.conf)
    fixed = Session.spec.conf
    # Other variants and cases may have set these.
    others = {key for other in VARIANTS.values() for key in other.conf}
    others |= {"spark.sql.adaptive.advisoryPartitionSizeInBytes", _SKEW_JOIN}
    for key in others - settings.keys() - fixed.keys():
        Session.spark.conf.unset(key)
    for key in settings.keys() - fixed.keys():
        Session.spark.conf.set(key, settings[key])
    at = (point.kind, rows, point.tables)
    if at not in Session.tables:
        Session.tables[at] = data.read(Session.spark, Session.spec.cache, *at)
    return Session.tables[at]


def process() -> Path:
    """The statistics of the JVM of this session, in proc(5)."""
    session: Any = Session.spark
    return Path(f"/proc/{session.sparkContext._gateway.proc.pid}/stat")


def cpu_seconds(stat: Path) -> float:
    """CPU seconds of a process with all of its threads; 0 where there is no proc(5)."""
    try:
        fields = stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _in_a_line(error: Exception) -> str:
    """The cause of an error; Spark's messages have pages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [
        line for line in lines if "OutOfMemory" in line or "Caused by" in line or "error:" in line
    ]
    return f"{type(error).__name__}: {(causes or lines[:1] or [''])[-1][:300]}"
