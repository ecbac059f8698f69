"""Hot keys in a heap of 512 MB, in which stock Spark's full outer join runs out of memory.

What stock Spark does there is not a test: `bench/memory.py` shows both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from amount import some
from scripts import run_script

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "memory.py"
ROWS = 200_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "hot"),
    some(
        1,
        [("hot key in two of 3", (20_000, 200, 0)), ("hot key in one of 3", (1_000_000, 0, 0))],
    ),
)
def test_hot_key_in_a_small_heap(case: str, hot: tuple[int, ...]) -> None:
    # Millions of rows repay the optimizing compiler.
    environment = {name: os.environ[name] for name in os.environ if name != "SPARK_SUBMIT_OPTS"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--case", case],
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPATH": str(SCRIPT.parents[1] / "python")},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = (x for x in done.stdout.splitlines() if x.startswith("RESULT "))
    count, keys, *sums = json.loads(line[len("RESULT ") :])["sums"]
    product = max(1, hot[0]) * max(1, hot[1])
    # Each input has ROWS cold keys, each once, and shares half of them with the next one.
    cold = range(ROWS // 2 * (len(hot) + 1))
    assert count == product + len(cold)
    assert keys == sum(cold) - 7 * product
    for i, rows in enumerate(hot):
        of_hot = sum(range(rows)) * product // max(1, rows)
        of_cold = sum(range(rows, rows + ROWS))
        assert sums[i] == of_hot + of_cold
        assert sums[len(hot) + i] == 100 * (ROWS + (product if rows else 0))


SPLIT = """
from pyspark.sql import SparkSession, functions as F
import pyspark_skewext as skewext

builder = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "512m")
    .config("spark.memory.fraction", 0.25)
    .config("spark.ui.enabled", False)
    .config("spark.sql.shuffle.partitions", 4)
    .config("spark.sql.autoBroadcastJoinThreshold", -1)
    .config("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "16m")
    .config("spark.sql.adaptive.skewJoin.skewedPartitionFactor", 2)
    .config("spark.sql.adaptive.advisoryPartitionSizeInBytes", "16m")
)
spark = skewext.configure(builder).getOrCreate()

HOT, COLD, OTHERS = 600_000, 100_000, 300_000
text = F.sha2(F.col("id").cast("string"), 512)
skewed = spark.range(HOT + COLD).select(
    F.when(F.col("id") < HOT, 7).otherwise(F.col("id")).alias("k"),
    F.col("id").alias("v0"),
    text.alias("s0"),
)
others = [
    spark.range(start, start + OTHERS).select(
        F.col("id").alias("k"), F.col("id").alias(f"v{i}"), text.alias(f"s{i}")
    )
    for i, start in ((1, 0), (2, OTHERS // 2))
]
joined = skewext.multi_full_join(skewed, *others, on="k")
sums = [F.sum(c) for c in ("v0", "v1", "v2")] + [F.sum(F.length(c)) for c in ("s0", "s1", "s2")]
found = joined.agg(F.count("*"), *sums)
(result,) = found.collect()
plan = found._jdf.queryExecution().executedPlan()
assert "MultiFullJoin (skew: " in plan.toString(), plan

# Keys: 7 in the first two inputs, cold ones from HOT on, and those of the others from 0 on.
distinct = OTHERS + OTHERS // 2
assert result[0] == HOT + COLD + distinct - 1, result
assert result[1] == sum(range(HOT + COLD)), result
assert result[2] == sum(range(OTHERS)) + (HOT - 1) * 7, result
assert result[3] == sum(range(OTHERS // 2, distinct)), result
assert result[4] == 128 * (HOT + COLD), result
assert result[5] == 128 * (OTHERS + HOT - 1), result
assert result[6] == 128 * OTHERS, result

def joins(node):
    kind = node.getClass().getSimpleName()
    if kind == "SplitJoinExec":
        return [node]
    if kind == "AdaptiveSparkPlanExec":
        return joins(node.executedPlan())
    if kind.endswith("QueryStageExec"):
        return joins(node.plan())
    below = node.children()
    return [found for i in range(below.size()) for found in joins(below.apply(i))]

(join,) = joins(plan)
print("SPILLED", join.metrics().apply("spillSize").value())
spark.stop()
"""


@pytest.mark.slow
def test_split_tasks_in_a_small_heap(tmp_path: Path) -> None:
    """What the other inputs have is read by every task of the split, and does not fit."""
    out = run_script(SPLIT, tmp_path)
    assert int(out.split("SPILLED ")[1].split()[0]) > 0
