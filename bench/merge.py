"""MERGEs with a skewed side into tables of Delta and Iceberg, with the extension and without.

    bench/merge.py                   all cases, with 4,000,000 rows of the target
    bench/merge.py --only iceberg    cases and tables whose names contain this
    bench/merge.py --rows 40000      another size; results of less than a million rows are not kept

A table is made once, and each MERGE is rolled back. Stock Spark and ours take turns in one
session, after a MERGE each into a small table. Each MERGE must leave the same rows behind and
report the same metrics; our rule must split it where SPLITS says so.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import summary
from harness.facts import Watch, balance
from harness.measure import progress
from harness.sessions import configured, whole_heap
from harness.variants import SWITCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parents[1]
WAYS = ("stock", "ours")
ROWS = 4_000_000
WARM_UP_ROWS = 40_000
HOT = -7
JARS = ROOT / "target" / "spark-3.5" / "lakehouse-jars.txt"

TABLES = {
    "delta": "delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    "delta, deletion vectors": "delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "iceberg, copy-on-write": (
        "iceberg TBLPROPERTIES ('format-version' = '2', 'write.merge.mode' = 'copy-on-write')"
    ),
}


@dataclass(frozen=True)
class Case:
    """A target, a source, and the clauses of the MERGE; sizes are shares of the rows."""

    name: str
    #: Of the target: how much of it has one key, and how many rows each other key has.
    hot: float
    copies: int
    #: Of the source: keys that the target has, others, and rows without a key.
    matching: float
    new: float
    nulls: float
    clauses: str


UPDATE = "WHEN MATCHED THEN UPDATE SET v = s.v, txt = s.txt"
INSERT = (
    "WHEN NOT MATCHED THEN INSERT (k, v, txt, is_current)"
    " VALUES (coalesce(s.k, s.id), s.v, s.txt, true)"
)
CLOSE = "WHEN MATCHED AND t.is_current AND t.v <> s.v THEN UPDATE SET is_current = false"

CASES = (
    Case("upsert", 0.5, 4, 1 / 16, 1 / 32, 0, f"{UPDATE} {INSERT}"),
    # New versions of rows, which must match nothing, come without a key.
    Case("SCD2", 0, 1, 0.15, 0.2, 0.15, f"{CLOSE} {INSERT}"),
)

#: Where our rule splits a join of the MERGE.
SPLITS = {
    ("upsert", "delta"),
    ("upsert", "delta, deletion vectors"),
    ("upsert", "iceberg, copy-on-write"),
    # With deletion vectors Spark splits it. In Iceberg's tables null keys are spread before.
    ("SCD2", "delta"),
}

#: For ROWS rows, and in proportion for fewer. Spark's defaults are 64, 16 and 32 times as large.
#: Scans are small because the output of few map tasks cannot be cut into many slices. Slices are
#: larger, as a task and a file take as long to start as 10,000 rows take to join.
SIZES = {
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": 2**22,
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": 2**22,
    "spark.sql.files.maxPartitionBytes": 2**22,
    "spark.sql.files.openCostInBytes": 2**17,
}
FILES = 32


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="bench/merge.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rows", type=int, default=ROWS, help=f"rows of the target ({ROWS:,})")
    add("--rounds", type=int, default=3, help="rounds, each way once in each (3)")
    add("--only", default="", help="tables and cases whose names contain this")
    add("--heap", default="4g", help="heap of the session (%(default)s)")
    add("--cores", type=int, default=2, help="cores for Spark (2)")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Measure; 1 if a MERGE did something else than without the extension."""
    options = parse(arguments)
    problems: list[str] = []
    home = Path(tempfile.mkdtemp(prefix="merge-"))
    try:
        spark = session(options, home)
        for case in CASES:
            for kind in TABLES:
                if options.only not in f"{kind}; {case.name}":
                    continue
                measure(spark, case, kind, min(options.rows, WARM_UP_ROWS), 1)
                found = measure(spark, case, kind, options.rows, options.rounds)
                problems += [f"{case.name}, {kind}: {problem}" for problem in found["problems"]]
                progress(json.dumps(found))
                if options.rows >= ROWS // 4:
                    keep(case, kind, found, options)
        spark.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    progress("\n".join(problems) or "no problems")
    return 1 if problems else 0


def session(options: argparse.Namespace, home: Path) -> SparkSession:
    """Delta, Iceberg and the extension; shuffled joins of 16 partitions."""
    return configured(
        f"local[{options.cores}]",
        {
            "spark.jars": JARS.read_text(encoding="utf-8").strip(),
            "spark.driver.memory": options.heap,
            "spark.driver.extraJavaOptions": (
                f"{whole_heap(options.heap)} -Dderby.system.home={home}"
            ),
            "spark.local.dir": str(home / "shuffle"),
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": str(home / "ice"),
            # A MERGE of Delta's has many, and `facts` asks for them afterwards.
            "spark.ui.retainedStages": "50000",
            "spark.ui.retainedJobs": "50000",
            "spark.sql.shuffle.partitions": "16",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
        },
    )


def measure(spark: SparkSession, case: Case, kind: str, rows: int, rounds: int) -> dict[str, Any]:
    """Rounds of the MERGE, both ways in turns, each on the table as it was made."""
    for key, size in SIZES.items():
        spark.conf.set(key, f"{round(rows / ROWS * size)}b")
    target = ("ice.db." if kind.startswith("iceberg") else "") + "target"
    spark.sql(f"DROP TABLE IF EXISTS {target} PURGE")
    target_rows(spark, case, rows).createOrReplaceTempView("made")
    spark.sql(f"CREATE TABLE {target} USING {TABLES[kind]} AS SELECT * FROM made")
    spark.sql("DROP TABLE IF EXISTS source")
    source_rows(spark, case, rows).write.format("parquet").saveAsTable("source")
    made = version(spark, target)
    ways: dict[str, dict[str, Any]] = {way: {"seconds": [], "tasks": []} for way in WAYS}
    problems = []
    first: tuple[Any, ...] | None = None
    for number in range(rounds):
        for way in WAYS[::-1] if number % 2 else WAYS:
            spark.conf.set(SWITCH, str(way != "stock").lower())
            figures = merge(spark, target, case)
            progress(f"{case.name}, {kind}, {rows} rows, {way}: {figures}")
            ways[way]["seconds"].append(figures.pop("seconds"))
            ways[way]["tasks"].append(figures.pop("tasks"))
            ways[way].update(figures)
            done = content(spark, target), metrics(spark, target)
            first = first or done
            if done != first:
                problems.append(f"{way}: {done} is not {first}")
            if bool(figures["split_by_us"]) != (way == "ours" and (case.name, kind) in SPLITS):
                problems.append(f"{way}: {figures['split_by_us']} joins are split by us")
            take_back(spark, target, made)
    assert first is not None
    return {"rows": first[0][0], "metrics": first[1], **ways, "problems": problems}


def target_rows(spark: SparkSession, case: Case, rows: int) -> DataFrame:
    """Each key as often as the case has it, the hot one on every other row or on none."""
    hot = round(case.hot * rows)
    return spark.range(0, rows, 1, FILES).selectExpr(
        # Of a key all rows are in other files, as of a table that grows day by day.
        f"if(id % 100 < {round(100 * case.hot)}, {HOT}, id % {(rows - hot) // case.copies}) AS k",
        "id AS v",
        "md5(cast(id AS string)) AS txt",
        "true AS is_current",
    )


def source_rows(spark: SparkSession, case: Case, rows: int) -> DataFrame:
    """Keys of the target, the hot one among them, others, and rows without any."""
    matching, new = round(case.matching * rows), round(case.new * rows)
    nulls = round(case.nulls * rows)
    hot = f"WHEN id = 0 THEN {HOT}" if case.hot else ""
    return spark.range(0, matching + new + nulls, 1, 8).selectExpr(
        f"CASE {hot} WHEN id < {matching} THEN id WHEN id < {matching + new} THEN id + {rows} END"
        " AS k",
        "id",
        "-id AS v",
        "md5(cast(-id AS string)) AS txt",
    )


def merge(spark: SparkSession, target: str, case: Case) -> dict[str, Any]:
    """Do it, and tell what it took."""
    session: Any = spark
    session._jvm.java.lang.System.gc()
    watch = Watch(spark)
    begin = time.perf_counter()
    spark.sql(f"MERGE INTO {target} t USING source s ON t.k = s.k {case.clauses}")
    seconds = time.perf_counter() - begin
    found = watch.facts()
    return {
        "seconds": round(seconds, 2),
        "tasks": balance(found["stages"]),
        "split_by_us": found["operators"].get("OursSplit", 0),
        "split_by_spark": found["operators"].get("SparkSplit", 0),
        "splits": found.get("splits", []),
    }


def content(spark: SparkSession, target: str) -> list[Any]:
    """How many rows it has, and a sum over all of them."""
    (row,) = spark.sql(
        "SELECT count(*), sum(cast(xxhash64(k, v, txt, is_current, k IS NULL) AS decimal(38, 0)))"
        f" FROM {target}"
    ).collect()
    return [row[0], str(row[1])]


def version(spark: SparkSession, target: str) -> int:
    """The newest version or snapshot."""
    if target.startswith("ice."):
        found = spark.sql(f"SELECT snapshot_id FROM {target}.snapshots ORDER BY committed_at DESC")
    else:
        found = spark.sql(f"DESCRIBE HISTORY {target} LIMIT 1").select("version")
    return int(found.head()[0])  # type: ignore[index]


def metrics(spark: SparkSession, target: str) -> dict[str, str]:
    """What the MERGE says that it has done to rows."""
    if target.startswith("ice."):
        found = spark.sql(f"SELECT summary FROM {target}.snapshots ORDER BY committed_at DESC")
    else:
        found = spark.sql(f"DESCRIBE HISTORY {target} LIMIT 1").select("operationMetrics")
    told: dict[str, str] = found.head()[0]  # type: ignore[index]
    return {k: v for k, v in sorted(told.items()) if "Rows" in k or k.endswith("-records")}


def take_back(spark: SparkSession, target: str, made: int) -> None:
    """The table as it was made."""
    if target.startswith("ice."):
        name = target.split(".", 1)[1]
        spark.sql(f"CALL ice.system.rollback_to_snapshot('{name}', {made})")
    else:
        spark.sql(f"RESTORE TABLE {target} TO VERSION AS OF {made}")


def keep(case: Case, kind: str, found: dict[str, Any], options: argparse.Namespace) -> None:
    """Add the figures to the result file."""
    for way in WAYS:
        tasks = found[way].pop("tasks")
        found[way]["tasks"] = {key: median(run[key] for run in tasks) for key in tasks[0]}
    known = summary.read("merge.json").get("cases", {})
    summary.keep("merge.json", cases={**known, f"{case.name}; {kind}; {options.rows}": found})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
