"""Five jobs whose gain `query_report` predicts: their tables, and the commands of a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from harness.worker import Json, Session
from pyspark_skewext import query_report
from pyspark_skewext.report import QueryReport

_MB = 2**20
_WHOLE = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
_SKEW = "spark.sql.adaptive.skewJoin.skewedPartition"
#: Thresholds that fit the size of the tables.
_SMALL_SLICES = {
    f"{_SKEW}ThresholdInBytes": str(2 * _MB),
    f"{_SKEW}Factor": "3",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(2 * _MB),
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.shuffle.partitions": "16",
}
CHAIN = 7


@dataclass(frozen=True)
class Job:
    """A query with its settings."""

    name: str
    sql: str
    conf: dict[str, str] = field(default_factory=dict)


JOBS = (
    Job(
        "chain of six full joins",
        "SELECT * FROM t0 " + " ".join(f"FULL JOIN t{n} USING (k)" for n in range(1, CHAIN)),
        _WHOLE,
    ),
    Job(
        "inner join, aggregate",
        "SELECT g, sum(lines.v0), max(orders.v1) FROM lines JOIN orders USING (k) GROUP BY g",
        _WHOLE,
    ),
    Job(
        "skewed full join",
        "SELECT k, hot.v0 AS a, hot.s AS b, orders.v1 AS c, orders.s AS d "
        "FROM hot FULL JOIN orders USING (k)",
        _WHOLE | _SMALL_SLICES,
    ),
    Job("range join", "SELECT p.k, i.g FROM points p JOIN ranges i ON p.t >= i.lo AND p.t < i.hi"),
    Job(
        "two broadcast joins, aggregate",
        "SELECT a.w, b.w AS other, sum(v0) FROM lines JOIN small a ON g = a.k "
        "JOIN small b ON v0 % 1000 = b.k GROUP BY a.w, b.w",
    ),
)


def generate(folder: Path, rows: int) -> None:
    """Make the tables, if they are missing."""
    values = "random_of(i, 1, 1000000) AS v0, random_of(i, 2, 100000) AS v1, md5(i::VARCHAR) AS s"
    tables = {
        "lines": f"i % {rows // 4} AS k, random_of(i, 3, 5000) AS g, {values} "
        f"FROM range({4 * rows}) r(i)",
        "orders": f"i AS k, {values} FROM range({rows // 4}) r(i)",
        "hot": f"CASE WHEN i % 3 = 0 THEN 7 ELSE i % {rows} END AS k, {values} "
        f"FROM range({6 * rows}) r(i)",
        "points": f"i AS k, random_of(i, 4, 100000000) AS t FROM range({rows}) r(i)",
        "ranges": "i AS g, i * 50000 AS lo, i * 50000 + 40000 AS hi FROM range(2000) r(i)",
        "small": "i AS k, i % 7 AS w FROM range(1000) r(i)",
        **{
            f"t{n}": f"i * 2 + random_of(i, {10 + n}, 2) AS k, "
            f"v0 AS v0_{n}, v1 AS v1_{n}, s AS s_{n} "
            f"FROM (SELECT i, {values} FROM range({rows // 2}) r(i))"
            for n in range(CHAIN)
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        # Spark has no unsigned numbers.
        connection.execute("CREATE MACRO random_of(i, s, n) AS (hash(i, s) % n)::BIGINT")
        for name, sql in tables.items():
            path = folder / f"{name}.parquet"
            if not path.exists():
                to = f"'{path}' (FORMAT parquet, ROW_GROUP_SIZE 100000)"
                connection.execute(f"COPY (SELECT {sql}) TO {to}")


def run(job: Job, data: Path, enabled: bool) -> int:
    """Run a job into Spark's `noop` sink; its number in the event log."""
    spark = Session.spark
    for key in {key for each in JOBS for key in each.conf}:
        spark.conf.unset(key)
    conf = {
        "spark.sql.autoBroadcastJoinThreshold": str(10 * _MB),
        **job.conf,
        "spark.skewext.enabled": str(enabled).lower(),
    }
    for key, value in conf.items():
        spark.conf.set(key, value)
    for path in data.glob("*.parquet"):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
    spark.sql(job.sql).write.format("noop").mode("overwrite").save()
    return query_report().query


def log_of_session() -> str:
    """The event log that this session writes."""
    spark = Session.spark
    folder: Any = spark.conf.get("spark.eventLog.dir")
    return f"{folder}/{spark.sparkContext.applicationId}.inprogress"


def figures(log: str, number: int) -> Json:
    """Seconds of all tasks and of the longest one of a join, and the predicted ones."""
    report = query_report(number, event_log=log)
    return {
        "tasks": sum(each.total.seconds for each in report.stages) + report.other_seconds,
        "longest": max(each.slowest.seconds for each in report.stages),
        "saved": sum(each.saved_seconds for each in report.gains),
        "predicted_longest": _longest(report),
        "text": str(report),
    }


def _longest(report: QueryReport) -> float:
    earlier = {each.join.stage: each.earlier_seconds for each in report.gains}
    return max(each.slowest.seconds - earlier.get(each.stage, 0.0) for each in report.stages)
