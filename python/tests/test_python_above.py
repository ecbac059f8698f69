"""Python above a join, in little memory: a thread of its own asks for the join's rows then."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import run_script

SCRIPT = """
import pyspark_skewext as skewext
from pyspark.sql import SparkSession, functions as F

builder = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", False)
    .config("spark.testing.memory", 12 << 20)
    .config("spark.testing.reservedMemory", 0)
    .config("spark.sql.shuffle.partitions", 1)
    # So that what runs in one task is the same everywhere.
    .config("spark.sql.adaptive.enabled", False)
    # Generated code aggregates when the first row is asked for.
    .config("spark.sql.codegen.wholeStage", True)
    .config("spark.sql.autoBroadcastJoinThreshold", -1)
)
spark = skewext.configure(builder).getOrCreate()
INPUTS = 3


def aggregated(i, rows):
    keys = spark.range(0, rows, 1, 4).select(
        (F.col("id") * (i + 1)).alias("k"), (F.col("id") % 7).alias("v")
    )
    return keys.groupBy("k").agg(F.sum("v").alias(f"s{i}"))


more = F.udf(lambda k: k + 1, "long")
# The second is more than there is memory for.
for rows in (40_000, 70_000):
    joined = skewext.multi_full_join(*[aggregated(i, rows) for i in range(INPUTS)], on="k")
    found = joined.select(more("k").alias("k"), "s0", "s1", "s2").agg(
        F.count("*"), F.sum("k"), F.sum("s0"), F.sum("s1"), F.sum("s2")
    )
    (row,) = found.collect()
    assert "MultiFullJoin" in found._jdf.queryExecution().executedPlan().toString()
    keys = {n * (i + 1) for i in range(INPUTS) for n in range(rows)}
    values = sum(n % 7 for n in range(rows))
    assert tuple(row) == (len(keys), sum(keys) + len(keys), values, values, values), row

# The query fails as it would without the UDF; that thread dying, it would wait for ever.
spark.conf.set("spark.sql.adaptive.enabled", True)
spark.conf.set("spark.sql.codegen.wholeStage", False)
wide = spark.range(2).selectExpr("-id AS k", "repeat('x', int(id) + 18874368) AS s")
same = F.udf(lambda k: k, "long")
joined = skewext.multi_full_join(wide, spark.range(2).withColumnRenamed("id", "k"), on="k")
try:
    print(joined.select(same("k"), F.length("s")).collect())
except Exception as e:
    assert "no memory" in str(e), e
    print("FAILED")
spark.stop()
"""


@pytest.mark.slow
def test_a_join_below_a_udf(tmp_path: Path) -> None:
    """Aggregations of the inputs ask for the join's memory on that thread; then there is none."""
    assert "FAILED" in run_script(SCRIPT, tmp_path)
