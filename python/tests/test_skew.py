"""Skewed partitions, split: against DuckDB, and with tasks that run again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from amount import TEST_ALL, some
from duck import duck_join
from harness.standalone import Standalone
from multisets import assert_same_rows
from pyspark.sql import DataFrame, SparkSession
from scripts import run_script
from stock import setting

from pyspark_skewext import multi_join

_SMALL = {
    "spark.sql.shuffle.partitions": 5,
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": 1000,
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": 2,
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": 500,
}


@pytest.fixture(autouse=True)
def _small_thresholds(spark: SparkSession) -> Iterator[None]:
    with ExitStack() as settings:
        for key, value in _SMALL.items():
            settings.enter_context(setting(spark, key, value))
        yield


def rows(seed: int, size: int, hot: float) -> list[tuple[int | None, str]]:
    """Rows of which a part has key 3, some none and the others one of 40 keys."""
    random_ = random.Random(seed)
    return [
        (
            None if random_.random() < 0.05 else 3 if random_.random() < hot else n % 40 + seed,
            f"{random_.random():.12f}",
        )
        for n in range(size)
    ]


def frame(spark: SparkSession, name: str, data: list[Any], maps: int) -> DataFrame:
    parallel = spark.sparkContext.parallelize(data, maps)
    # Rows from Python may be others when they are made again, for all that Spark knows.
    return spark.createDataFrame(parallel, f"k int, {name} string").localCheckpoint()


def is_split(df: DataFrame) -> bool:
    return "Join (skew: " in df._jdf.queryExecution().executedPlan().toString()


_ROLES = [
    ["optional", "optional", "optional"],
    ["required", "optional", "excluded"],
    ["optional", "required", "optional"],
    ["optional", "excluded", "optional"],
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("roles", "hot_input", "maps"), some(8, [*product(_ROLES, range(3), [1, 4])])
)
def test_one_hot_key_against_duckdb(
    spark: SparkSession, roles: list[str], hot_input: int, maps: int
) -> None:
    data = [rows(n, *((900, 0.5) if n == hot_input else (60, 0.03))) for n in range(3)]
    inputs = [frame(spark, f"v{n}", data[n], maps) for n in range(3)]
    joined = multi_join(*inputs, on="k", how=roles)
    expected = duck_join([(["INT", "VARCHAR"], d) for d in data], 1, roles)
    assert_same_rows(joined, expected)
    # Of an excluded input only the keys are read, and equal ones need hardly any space.
    assert is_split(joined) or roles[hot_input] == "excluded"


_JOINS = [("full", True), ("full", False), ("left", False), ("right", True), ("left_semi", True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "hot_left", "hint"),
    some(8, [(*join, hint) for join in _JOINS for hint in ("merge", "shuffle_hash")]),
)
def test_joins_of_spark_against_duckdb(
    spark: SparkSession, how: str, hot_left: bool, hint: str
) -> None:
    data = [rows(0, *((900, 0.5) if hot_left else (60, 0.03)))]
    data.append(rows(1, *((60, 0.03) if hot_left else (900, 0.5))))
    # What one map task wrote Spark leaves whole, also on the left of a semi join.
    maps = 1 if how == "left_semi" else 4
    one, other = (frame(spark, f"v{n}", data[n], maps) for n in range(2))
    joined = one.join(other.hint(hint), "k", how)
    roles = {
        "full": ["optional", "optional"],
        "left": ["required", "optional"],
        "right": ["optional", "required"],
        "left_semi": ["required", "required"],
    }[how]
    tables: list[Any] = [(["INT", "VARCHAR"], d) for d in data]
    if how == "left_semi":
        tables[1] = (["INT"], [(k,) for k in {k for k, _ in data[1]}])
    assert_same_rows(joined, duck_join(tables, 1, roles))
    assert is_split(joined)


@pytest.mark.slow
@pytest.mark.parametrize("maps", [1, 4])
def test_many_rows_of_a_key_on_both_sides_against_duckdb(spark: SparkSession, maps: int) -> None:
    data = [rows(n, 240, 0.6) for n in range(2)]
    one, other = (frame(spark, f"v{n}", data[n], maps) for n in range(2))
    with ExitStack() as settings:
        # The partition is too small to be skewed, but for its output.
        for key, value in {
            "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": 100_000,
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": 20_000,
            "spark.skewext.skew.output.sampleEvery": 1,
            "spark.skewext.skew.outputSkew.mode": "all",
        }.items():
            settings.enter_context(setting(spark, key, value))
        for how in ("full", "left", "inner"):
            joined = one.join(other, "k", how)
            roles = {
                "full": ["optional", "optional"],
                "left": ["required", "optional"],
                "inner": ["required", "required"],
            }[how]
            expected = duck_join([(["INT", "VARCHAR"], d) for d in data], 1, roles)
            assert_same_rows(joined, expected)
            assert "1 for its output" in joined._jdf.queryExecution().executedPlan().toString()
            with setting(spark, "spark.skewext.skew.outputSkew.mode", "off"):
                whole = one.join(other, "k", how)
                whole.collect()
                assert not is_split(whole)


RETRYING = """
import os, signal, sys, time
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType
import pyspark_skewext as skewext

folder = sys.argv[1]
builder = (
    SparkSession.builder.master(sys.argv[2])
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.executor.memory", "640m")
    .config("spark.driver.memory", "768m")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.ui.enabled", False)
    .config("spark.speculation", True)
    .config("spark.speculation.interval", "50ms")
    .config("spark.speculation.quantile", 0.2)
    # So that no other task is tried twice.
    .config("spark.speculation.minTaskRuntime", "4s")
    .config("spark.sql.shuffle.partitions", 4)
    .config("spark.sql.autoBroadcastJoinThreshold", -1)
    .config("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", 3000)
    .config("spark.sql.adaptive.skewJoin.skewedPartitionFactor", 2)
    .config("spark.sql.adaptive.advisoryPartitionSizeInBytes", 2000)
)
spark = skewext.configure(builder).getOrCreate()

def table(i, size, hot, maps):
    key = F.when(F.col("id") % 4 < hot, F.lit(3)).otherwise(F.col("id") % 60 + i)
    text = F.md5(F.col("id").cast("string"))
    return spark.range(0, size, 1, maps).select(key.alias("k"), text.alias(f"s{i}"))

def once(what, value):
    # True in the first task that asks with this value, whichever process it is in.
    try:
        os.close(os.open(f"{folder}/{what}-{value}", os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False

@F.udf(IntegerType())
def breaks(what, value):
    context = TaskContext.get()
    attempt, partition = context.attemptNumber(), context.partitionId()
    if what == "task" and attempt == 0 and once(what, partition):
        raise ValueError("this task fails once")
    # Not every range of a block this small has rows.
    if what == "executor" and partition >= 2 and once(what, 0):
        # The parent is the daemon of the Python workers, its parent the executor. With it goes
        # what its map tasks have written.
        with open(f"/proc/{os.getppid()}/stat") as stat:
            os.kill(int(stat.read().split()[3]), signal.SIGKILL)
    if what in ("residual", "piece") and partition == ("residual", "piece").index(what):
        once(what, attempt)
        if attempt == 0:
            time.sleep(90)
        while not os.path.exists(f"{folder}/{what}-0"):
            # The first attempt may not have come to its first row.
            time.sleep(0.1)
    return 1

def rows(df):
    return sorted(map(str, df.collect()))

def check(maps, what, marks):
    inputs = [table(0, 2000, 2, maps), table(1, 100, 0, 3), table(2, 100, 0, 2)]
    spark.conf.set("spark.skewext.enabled", "false")
    expected = rows(skewext.multi_full_join(*inputs, on="k"))
    spark.conf.set("spark.skewext.enabled", "true")
    joined = skewext.multi_full_join(*inputs, on="k")
    broken = joined.where(breaks(F.lit(what), F.coalesce("s0", "s1", "s2")) == 1)
    began = time.time()
    assert rows(broken) == expected, (maps, what)
    assert time.time() - began < 90, (maps, what)
    plan = broken._jdf.queryExecution().executedPlan().toString()
    # The residual is the first task, and pieces follow.
    assert "skew: 1 partition in " in plan and ", 1 residual)" in plan, (maps, what, plan)
    left = os.listdir(folder)
    for mark in marks:
        assert any(name.startswith(mark) for name in left), (maps, what, left)
    for name in left:
        os.remove(f"{folder}/{name}")
    print("SAME", maps, what, len(expected))

for case in sys.argv[3:]:
    maps, what = case.split("-")
    slow = what in ("residual", "piece")
    check(int(maps), what, [f"{what}-0", f"{what}-1"] if slow else [what])
spark.stop()
"""


@pytest.mark.slow
def test_tasks_and_executors_that_fail_or_are_slow(tmp_path: Path) -> None:
    cases = ["6-executor"]
    marks = tmp_path / "marks"
    marks.mkdir()
    with ExitStack() as clusters:
        # Its master and workers are threads of the driver.
        master = "local-cluster[2,1,1024]"
        if TEST_ALL:
            cases += ["1-task", "1-executor", "6-task", "6-residual", "6-piece"]
            # A task is not tried a second time on the host where it runs, so there are two, by
            # their names.
            cluster = clusters.enter_context(Standalone(tmp_path.resolve() / "cluster", "1g"))
            cluster.add_worker("127.0.0.1")
            cluster.add_worker("localhost")
            master = cluster.url
        out = run_script(RETRYING, tmp_path, str(marks), master, *cases)
    assert out.count("SAME ") == len(cases)
