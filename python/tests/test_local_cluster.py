"""Two executors in processes of their own: the jar and the plans must go over the wire."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import run_script

SCRIPT = """
import warnings

import pyspark_skewext as skewext
from pyspark.sql import SparkSession

builder = (
    SparkSession.builder.master("local-cluster[2,1,768]")
    .config("spark.executor.memory", "768m")
    .config("spark.driver.memory", "768m")
    .config("spark.ui.enabled", False)
    .config("spark.sql.shuffle.partitions", 4)
)
# Registered late, so that the executors begin without the jar.
spark = builder.getOrCreate()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    skewext.register(spark)
inputs = [
    spark.range(0, 200, 1, 4).selectExpr(
        f"if(id % 9 = {i}, null, id % 50 + {i}) AS k", "id % 3 = 0 AS l", f"id AS v{i}"
    )
    for i in range(3)
]

def joined():
    # A new DataFrame each time: a plan is made under the settings of its first use.
    return skewext.multi_full_join(*inputs, on=["k", "l"], indicator="i")

def rows(df):
    return sorted(map(str, df.collect()))

spark.conf.set("spark.skewext.enabled", "false")
expected = rows(joined())
spark.conf.set("spark.skewext.enabled", "true")
for key, value in [
    ("spark.skewext.multiJoin.grouping", "hash"),
    ("spark.skewext.multiJoin.maxRowsInMemory", "20"),
]:
    spark.conf.set(key, value)
    df = joined()
    assert rows(df) == expected, key
    assert "MultiFullJoin" in df._jdf.queryExecution().executedPlan().toString()
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
assert executors == 2, executors
print("SAME", len(expected))
spark.stop()
"""


@pytest.mark.slow
def test_executors_run_the_join(tmp_path: Path) -> None:
    assert "SAME " in run_script(SCRIPT, tmp_path)
