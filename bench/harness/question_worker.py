"""Commands inside the process of a session, for queries over Parquet files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import functions as F

from harness import facts
from harness.questions import is_join
from harness.worker import Json, Session, cpu_seconds, process, reported

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What a result keeps of a plan, besides the joins.
_OPERATORS = ("Exchange", "ColumnExchange", "NativeExchange", "Sort")
_WEIGHTS = 1009


class _Opened:
    """What this process has open: a folder of tables, and settings."""

    data: tuple[Path, bool] | None = None
    conf: ClassVar[dict[str, str]] = {}


def answer(sql: str, data: Path, conf: dict[str, str], analyzed: bool) -> Json:
    """Rows, a checksum of all exact columns, and weighted sums of the floating ones.

    Neither depends on the order of rows. Sums of floating columns depend on it a little.
    """

    def run() -> Json:
        _open(data, conf, analyzed)
        begin = time.perf_counter()
        found = sums(Session.spark.sql(sql))
        return {**found, "seconds": round(time.perf_counter() - begin, 3)}

    return reported(run)


def sums(frame: DataFrame) -> Json:
    """The answer of a query, as sums."""
    # Names may be there twice.
    frame = frame.toDF(*(f"c{n}" for n in range(len(frame.columns))))
    floating = [name for name, kind in frame.dtypes if kind in ("double", "float")]
    exact = [name for name in frame.columns if name not in floating]
    # xxhash64 skips nulls, so the digest includes whether each column is null.
    digest = F.xxhash64(*exact, *(F.col(name).isNull() for name in frame.columns))
    weight = F.pmod(digest, F.lit(_WEIGHTS)) + 1
    weighted = [F.col(name).cast("double") * weight for name in floating]
    total = F.sum(digest.cast("decimal(38,0)"))
    sums = [each for value in weighted for each in (F.sum(value), F.sum(F.abs(value)))]
    rows, checksum, *floats = frame.agg(F.count("*"), total, *sums).collect()[0]
    return {"rows": rows, "checksum": str(checksum), "floats": floats}


def run(sql: str, data: Path, conf: dict[str, str], analyzed: bool) -> Json:
    """Run the query into Spark's `noop` sink."""

    def command() -> Json:
        spark = Session.spark
        _open(data, conf, analyzed)
        # Garbage of the run before is not this one's; this also deletes its shuffle files.
        jvm: Any = spark._jvm
        jvm.java.lang.System.gc()
        time.sleep(0.2)
        watch, before = facts.Watch(spark), cpu_seconds(process())
        begin = time.perf_counter()
        spark.sql(sql).write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - begin
        cpu = cpu_seconds(process()) - before
        found = watch.facts()
        operators = found["operators"]
        return {
            "seconds": round(seconds, 3),
            "cpu_seconds": round(cpu, 2),
            "joins": {name: n for name, n in operators.items() if is_join(name)},
            "operators": {name: operators[name] for name in _OPERATORS if name in operators},
            "balance": facts.balance(found["stages"]),
            "shuffle_bytes": found["shuffle_bytes"],
            "spilled_disk_bytes": found["spilled_disk_bytes"],
            "peak_task_memory_bytes": found["peak_task_memory_bytes"],
        }

    return reported(command)


def close() -> None:
    """Drop the tables that are open."""
    spark = Session.spark
    if _Opened.data is None:
        return
    data, analyzed = _Opened.data
    for path in data.glob("*.parquet"):
        if analyzed:
            spark.sql(f"DROP TABLE IF EXISTS {path.stem}")
        else:
            spark.catalog.dropTempView(path.stem)
    _Opened.data = None


def _open(data: Path, conf: dict[str, str], analyzed: bool) -> None:
    """Set the settings, and no others, and make the tables known."""
    spark = Session.spark
    for key in _Opened.conf.keys() - conf.keys():
        spark.conf.unset(key)
    _Opened.conf = conf
    for key, value in conf.items():
        spark.conf.set(key, value)
    if _Opened.data == (data, analyzed):
        return
    close()
    for path in sorted(data.glob("*.parquet")):
        name = path.stem
        if not analyzed:
            spark.read.parquet(str(path)).createOrReplaceTempView(name)
            continue
        spark.sql(f"CREATE TABLE {name} USING parquet OPTIONS (path '{path.as_uri()}')")
        spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
    _Opened.data = (data, analyzed)
