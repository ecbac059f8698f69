"""Hot keys in a small heap: what stock Spark does, and what we do.

    bench/small_heap.py                 both cases, stock and ours, each in a JVM of 512 MB
    bench/small_heap.py --only ours     what python/tests/test_small_heap.py runs

Stock Spark's sort-merge full outer join keeps all rows of a key of both sides in arrays on the
heap. Ours streams the largest side and keeps the others where they can be spilled. Each run has a
session of its own, as a heap that has overflowed says nothing about the next run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results" / "small-heap.json"

#: Rows of the hot key in each of the inputs. Each also has 1,000 keys of its own.
CASES = {
    "3,000,000 x 1 x 1": (3_000_000, 1, 1),
    "20,000 x 200 x 1": (20_000, 200, 1),
}


def run_one(hot: tuple[int, ...], ours: bool, heap: str) -> None:
    """Join in this process; print the seconds and the sums of the result as JSON."""
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F

    import pyspark_skewext as skewext

    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", heap)
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.sql.shuffle.partitions", 4)
        .config("spark.sql.autoBroadcastJoinThreshold", -1)
        .config("spark.skewext.enabled", ours)
    )
    spark = skewext.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def table(i: int, rows: int) -> DataFrame:
        # Keys from 1,000 on are cold; key 7 is the hot one.
        key = F.when(F.col("id") < rows, F.lit(7)).otherwise(F.col("id") + 1000).cast("long")
        text = F.concat(F.lit("some value "), F.col("id").cast("string"))
        return spark.range(rows + 1000).select(
            key.alias("k"), F.col("id").alias(f"a{i}"), text.alias(f"s{i}")
        )

    started = time.time()
    joined = skewext.multi_full_join(*(table(i, rows) for i, rows in enumerate(hot)), on="k")
    lengths = [F.sum(F.length(f"s{i}")) for i in range(len(hot))]
    values = [F.sum(f"a{i}") for i in range(len(hot))]
    (sums,) = joined.agg(F.count("*"), *values, *lengths).collect()
    print("RESULT " + json.dumps({"seconds": time.time() - started, "sums": list(sums)}))


def run(case: str, ours: bool, heap: str, timeout: float) -> dict[str, object]:
    """Run a case in a process of its own."""
    command = [sys.executable, __file__, "--case", case, "--heap", heap]
    command += ["--only", "ours" if ours else "stock"]
    started = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"outcome": f"not done after {timeout:.0f} s", "seconds": time.time() - started}
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return {"outcome": "done", **json.loads(line[len("RESULT ") :])}
    if "OutOfMemoryError" in done.stdout + done.stderr:
        return {"outcome": "OutOfMemoryError", "seconds": time.time() - started}
    return {"outcome": f"failed ({done.returncode}): {done.stderr[-500:]}"}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=["ours", "stock"])
    parser.add_argument("--case", choices=list(CASES), help="run just this one, in this process")
    parser.add_argument("--heap", default="512m")
    parser.add_argument("--timeout", type=float, default=180, help="seconds a run may take")
    options = parser.parse_args()
    if options.case:
        run_one(CASES[options.case], options.only != "stock", options.heap)
        return 0
    variants = [options.only] if options.only else ["ours", "stock"]
    results: dict[str, dict[str, object]] = {}
    for case in CASES:
        for variant in variants:
            result = run(case, variant == "ours", options.heap, options.timeout)
            results.setdefault(case, {})[variant] = result
            seconds = result.get("seconds")
            took = f" in {seconds:.1f} s" if isinstance(seconds, float) else ""
            print(f"{case}, heap {options.heap}, {variant}: {result['outcome']}{took}", flush=True)
    if not options.only:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({"heap": options.heap, "cases": results}, indent=1) + "\n")
    failed = [c for c, by in results.items() if "ours" in by and by["ours"]["outcome"] != "done"]  # type: ignore[index]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
