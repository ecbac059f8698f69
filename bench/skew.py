"""Joins with one hot key: stock Spark and ours, task by task.

Half of the rows of the first table have one key. The variants take turns in one session, in another
order each round; their checksums must be equal and their plans as named. What is reported, per
variant: wall seconds, and of the stage with the join the longest and the median task, from the
event log.

    .venv/bin/python bench/skew.py --rows 8 --cores 4
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RESULTS = Path(__file__).resolve().parent / "results" / "skew.json"
HOT = "HOTHOTHOTHOTHOT0"


def make_tables(spark: SparkSession, folder: Path, rows: int) -> None:
    """Write `hot`, half of whose rows have one key, and three tables of a quarter of the rows."""
    from pyspark.sql import functions as F

    def key(number: object) -> object:
        return F.substring(F.md5(number.cast("string")), 1, 16)  # type: ignore[attr-defined]

    def values(name: str) -> list[object]:
        return [
            F.xxhash64("id", F.lit(name)).alias(f"a_{name}"),
            (F.xxhash64(F.lit(name), "id") % 1000).alias(f"b_{name}"),
            F.concat(F.lit("v"), (F.col("id") % 5000).cast("string")).alias(f"s_{name}"),
        ]

    def write(name: str, size: int, keys: object, maps: int = 8) -> None:
        if not (folder / name / "_SUCCESS").exists():
            frame = spark.range(0, size, 1, maps).select(keys.alias("k"), *values(name))  # type: ignore[attr-defined]
            frame.write.mode("overwrite").parquet(str(folder / name))

    number = F.col("id")
    cold = key((number / 2).cast("long") % (rows // 4))
    write("hot", rows, F.when(number % 2 == 0, F.lit(HOT)).otherwise(cold))
    for i in (1, 2, 3):
        shifted = key(number + rows // 8 * i)
        keys = F.when(number == 0, F.lit(HOT)).otherwise(shifted) if i == 1 else shifted
        write(f"t{i}", rows // 4, keys)


def cases(table: Callable[[str], DataFrame]) -> dict[str, Callable[[], DataFrame]]:
    """The joins: each works in stock Spark and with the extension."""
    import pyspark_skewext as skewext

    def two(how: str, hot_left: bool = True) -> Callable[[], DataFrame]:
        if hot_left:
            return lambda: table("hot").join(table("t1"), "k", how)
        return lambda: table("t1").join(table("hot"), "k", how)

    def chain() -> DataFrame:
        return skewext.multi_full_join(table("hot"), table("t1"), table("t2"), table("t3"), on="k")

    def one_stage() -> DataFrame:
        joined = table("hot").join(table("t1"), "k", "left")
        return joined.join(table("t2"), "k", "left").join(table("t3"), "k", "left")

    return {
        "full, hot left": two("full"),
        "full, hot right": two("full", hot_left=False),
        "left, hot left": two("left"),
        "left, hot right": two("left", hot_left=False),
        "right, hot left": two("right"),
        "inner, hot left": two("inner"),
        "one mapper, full": lambda: table("hot").coalesce(1).join(table("t1"), "k", "full"),
        "N=4, full": chain,
        "three left joins": one_stage,
    }


def checksum(frame: DataFrame, variant: str) -> tuple[object, ...]:
    """Number and sum of the rows; the plan must be what the variant is about."""
    from pyspark.sql import functions as F

    columns = [F.col(c) for c in sorted(frame.columns)]
    total = F.sum(F.xxhash64(*columns).cast("decimal(38,0)"))
    summed = frame.agg(F.count("*"), total)
    sums = tuple(summed.collect()[0])
    plan = summed._jdf.queryExecution().executedPlan().toString()
    assert ("MultiFullJoin" in plan) <= (variant != "stock"), plan
    # Spark's own split says skew=true.
    assert ("MultiFullJoin (skew: " in plan or "skew=true" in plan) >= (variant == "split"), plan
    return sums


def run_cases(options: argparse.Namespace, log: Path) -> list[dict[str, object]]:
    from pyspark.sql import SparkSession

    import pyspark_skewext as skewext

    builder = (
        SparkSession.builder.master(f"local[{options.cores}]")
        .config("spark.driver.memory", options.heap)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.ui.enabled", False)
        .config("spark.sql.shuffle.partitions", options.partitions)
        .config("spark.sql.autoBroadcastJoinThreshold", -1)
        .config("spark.sql.adaptive.advisoryPartitionSizeInBytes", "4m")
        .config("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "8m")
        .config("spark.eventLog.enabled", True)
        .config("spark.eventLog.dir", log.as_uri())
    )
    spark = skewext.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    folder = Path(options.data) / f"skew-{options.rows}m"
    make_tables(spark, folder, int(options.rows * 1_000_000))
    all_cases = cases(lambda name: spark.read.parquet(str(folder / name)))
    chosen = [c for c in all_cases if not options.case or options.case in c]
    variants = ["stock", "whole", "split"] if options.whole else ["stock", "split"]
    runs: list[dict[str, object]] = []
    for round_ in range(options.rounds + 1):
        for case in chosen:
            for variant in variants[:: -1 if round_ % 2 else 1]:
                spark.conf.set("spark.skewext.enabled", variant != "stock")
                spark.conf.set("spark.skewext.skew.enabled", variant == "split")
                frame = all_cases[case]()
                spark.sparkContext.setJobGroup(f"{round_}|{case}|{variant}", case)
                started = time.time()
                sums = checksum(frame, variant)
                run = {"round": round_, "case": case, "variant": variant, "sums": sums}
                runs.append({**run, "wall": time.time() - started})
                print(f"{case}, {variant}: {time.time() - started:.1f} s", file=sys.stderr)
    spark.stop()
    return runs


def task_times(log: Path) -> dict[str, tuple[float, float, int]]:
    """By job group: longest task, median task and number of tasks of the stage with the join."""
    group_of: dict[int, str] = {}
    tasks: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for file in log.iterdir():
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                group = event.get("Properties", {}).get("spark.jobGroup.id")
                for stage in event["Stage IDs"]:
                    if group and stage not in group_of:
                        group_of[stage] = group
            elif event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                info, read = event["Task Info"], event["Task Metrics"]["Shuffle Read Metrics"]
                size = read["Remote Bytes Read"] + read["Local Bytes Read"]
                took = info["Finish Time"] - info["Launch Time"]
                tasks[event["Stage ID"]].append((took, size))
    longest: dict[str, tuple[float, float, int]] = {}
    by_group: dict[str, list[list[int]]] = defaultdict(list)
    for stage, done in tasks.items():
        # A stage that reads no shuffle has no join in it.
        if sum(size for _, size in done) > 1_000_000 and stage in group_of:
            by_group[group_of[stage]].append([took for took, _ in done])
    for group, stages in by_group.items():
        times = max(stages, key=max)
        longest[group] = (max(times) / 1000, statistics.median(times) / 1000, len(times))
    return longest


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=8, help="millions, of the hot table")
    parser.add_argument("--rounds", type=int, default=3, help="after one that is not counted")
    parser.add_argument("--cores", type=int, default=4)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--heap", default="6g")
    parser.add_argument("--case", help="only cases with this in their name")
    parser.add_argument("--data", default=str(Path(__file__).resolve().parents[1] / ".cache/bench"))
    parser.add_argument("--whole", action="store_true", help="also ours without splits")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as log:
        runs = run_cases(options, Path(log))
        tasks = task_times(Path(log))
    failed = False
    table: dict[str, dict[str, object]] = {}
    for case in dict.fromkeys(str(r["case"]) for r in runs):
        mine = [r for r in runs if r["case"] == case]
        if len({r["sums"] for r in mine}) != 1:
            print(f"{case}: the answers differ: { {r['sums'] for r in mine} }")
            failed = True
        table[case] = {}
        for variant in dict.fromkeys(str(r["variant"]) for r in mine):
            counted = [r for r in mine if r["variant"] == variant and r["round"]]
            wall = min(float(str(r["wall"])) for r in counted)
            times = [tasks[f"{r['round']}|{case}|{variant}"] for r in counted]
            ratio = statistics.median(t[0] / t[1] for t in times)
            table[case][variant] = {
                "wall": round(wall, 2),
                "longest": round(min(t[0] for t in times), 2),
                "longest/median": round(ratio, 1),
                "tasks": times[0][2],
            }
            print(f"{case:20} {variant:6} {table[case][variant]}", flush=True)
    if options.save:
        RESULTS.parent.mkdir(exist_ok=True)
        setup = {k: getattr(options, k) for k in ("rows", "cores", "partitions", "heap", "rounds")}
        RESULTS.write_text(json.dumps({**setup, "cases": table}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
