"""The benchmark of joins with a hot key: tables, plans, and goals."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness import data, hot_tables, report
from harness.balance import balance
from harness.case import Goal, Point
from harness.cases import CASES, select
from harness.facts import Watch
from harness.skew_cases import SKEW_CASES
from harness.variants import VARIANTS, arranged, expected_plan
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from stages import stage
from stock import setting


def test_balance_is_of_the_stage_that_holds_up_the_others() -> None:
    scan = stage(0, [], [900, 100, 100], [1, 1, 1])
    even = stage(1, [0], [400, 390, 380], [1, 1, 1])
    small = stage(2, [1], [90, 1, 1], [1, 1, 1])
    assert balance([]) is None
    # A join of buckets is in the stage that scans.
    joined = balance([scan])
    assert joined is not None and joined["ratio"] == 9
    # Neither a scan nor tasks that are short anyway.
    found = balance([scan, even, small])
    assert found == {"longest_ms": 400, "median_ms": 390, "ratio": 400 / 390, "tasks": 3}
    # Nearly as long as the longest, and alone with it.
    uneven = stage(3, [1], [300, 10, 20], [1, 1, 1])
    assert balance([scan, even, uneven]) == pytest.approx(
        {"longest_ms": 300, "median_ms": 20, "ratio": 15, "tasks": 3}
    )


def points(on: list[float], off: list[float]) -> list[dict[str, Any]]:
    """Two queries, of which the second takes three seconds and does not care."""
    other = [3.0] * len(on)
    return [
        {"variants": {"on": {"seconds": a}, "off": {"seconds": b}}}
        for a, b in ((on, off), (other, other))
    ]


def test_an_overhead_is_found_in_the_noise_of_rounds() -> None:
    # The machine becomes slower and slower; three of twenty rounds are disturbed.
    off = [1 + 0.1 * n for n in range(20)]
    on = [1.02 * (b + 3) - 3 for b in off]
    for n in (3, 9, 15):
        on[n] += 2
    found = report.overhead(points(on, off), "on", "off", "seconds")
    assert found is not None
    assert found["rounds"] == 20
    assert found["median"] == pytest.approx(1.02)
    assert found["low"] == pytest.approx(1.02)
    assert report.percent(found) == "+2.0 % (+2.0 to +2.0)"
    goal = Goal("on", "off", "<=", 1.01, quantity="overhead")
    assert report.judge(goal, points(on, off))["reached"] is False
    assert report.judge(replace(goal, bound=1.03), points(on, off))["reached"] is True
    # Five rounds tell nothing.
    assert report.judge(goal, points(on[:5], off[:5]))["reached"] is None


def test_the_interval_of_a_median_is_that_of_its_order() -> None:
    ratios = [1 + n / 1000 for n in range(100)]
    only = [{"variants": {"on": {"seconds": ratios}, "off": {"seconds": [1.0] * 100}}}]
    found = report.overhead(only, "on", "off", "seconds")
    assert found is not None
    # Of 100 in order, the 41st and the 60th.
    assert (found["low"], found["high"]) == (1.04, 1.059)


def test_a_goal_about_tasks() -> None:
    point = {"variants": {"split": {"balance": {"ratio": 1.8}}, "failed": {}}}
    goal = Goal("split", "split", "<=", 2.0, quantity="tasks")
    assert str(goal) == "split: longest / median task <= 2"
    assert report.judge(goal, [point]) == {"goal": str(goal), "value": 1.8, "reached": True}
    assert report.judge(replace(goal, bound=1.5), [point])["reached"] is False
    assert report.judge(replace(goal, over="failed"), [point])["reached"] is None


def test_cases_say_who_splits() -> None:
    by_name = {case.name: case for case in CASES}
    split, stock = VARIANTS["split"], VARIANTS["sortmerge"]

    def plans(name: str) -> tuple[Any, Any]:
        point = by_name[name].points[0]
        return expected_plan(stock, point), expected_plan(split, point)

    joined = {"SortMergeJoin": 1, "Exchange": 2, "Sort": 2}
    whole = {**joined, "OursSplit": 0, "SparkSplit": 0}
    ours = {"MultiFullJoin": 1, "Exchange": 2, "OursSplit": 1, "SparkSplit": 0}
    assert plans("skew-full-left") == (whole, ours)
    assert plans("skew-inner") == ({**whole, "SparkSplit": 1},) * 2
    assert plans("skew-product") == (whole, ours)
    by_bucket = {"Exchange": 0}
    assert plans("buckets-skew") == ({**whole, **by_bucket}, {**ours, **by_bucket})
    counted = {name for name, case in by_name.items() if case.points[0].skewed_in_rows}
    assert counted == {"skew-product", "skew-semi-right", "skew-anti-right", "technique-both"}
    # Where we may do either, nothing is said.
    either = replace(by_name["skew-product"].points[0], split=None)
    assert expected_plan(split, either) is None
    three = {**whole, "SortMergeJoin": 3, "Exchange": 4, "Sort": 4}
    assert plans("skew-three-joins") == (three, {**ours, "Exchange": 4})
    nobody = replace(by_name["skew-full-left"].points[0], split="nobody")
    assert expected_plan(split, nobody) == whole
    assert select(["skew-*"]) == list(SKEW_CASES)


def test_a_look_has_a_few_of_the_joins_with_a_hot_key() -> None:
    look = [case.name for case in select([], look=True) if case.name.startswith("skew-")]
    few = ["skew-full-left", "skew-n4", "skew-three-joins", "skew-nulls-full", "skew-none"]
    assert look == few
    assert select([]) == list(CASES)
    # One that is asked for is run, whatever else.
    assert [case.name for case in select(["skew-inner"], look=True)] == ["skew-inner"]


def counts(table: DataFrame) -> tuple[int, int, int, int]:
    """Rows, those with the hot key, those without a key, and distinct keys."""
    key = F.col("device_id")
    (row,) = table.agg(
        F.count("*"),
        F.count_if(key == hot_tables.HOT),
        F.count_if(key.isNull()),
        F.countDistinct(key),
    ).collect()
    return tuple(row)


def test_the_tables_have_the_skew_that_they_stand_for(spark: SparkSession, tmp_path: Path) -> None:
    def made(kind: str, tables: int) -> list[DataFrame]:
        for table in range(tables):
            data.generate(spark, tmp_path, kind, 1600, table)
        return data.read(spark, tmp_path, kind, 1600, tables)

    hot, other = made("hot", 2)
    assert counts(hot) == (1600, 800, 0, 401)
    assert counts(other) == (400, 1, 0, 400)
    shared = hot.select("device_id").distinct().join(other, "device_id")
    # Half of the keys, the hot one in place of one of them.
    assert shared.count() == 200
    point = Point("", kind="hot", tables=2, swapped=True, one_mapper=True)
    assert [t.columns[1] for t in arranged([hot, other], point)] == ["t1_a", "t0_a"]
    assert arranged([hot, other], point)[1].rdd.getNumPartitions() == 1
    (nulls,) = made("hotnulls", 1)
    rows, _, without, keys = counts(nulls)
    assert rows == 1600 and 380 < keys <= 400
    assert 0.25 < without / rows < 0.35
    (one,) = made("product", 1)
    assert counts(one) == (1600 + 190, 190, 0, 1601)
    assert hot_tables.product_copies(400_000) == 3000


def test_splits_are_seen_in_the_executed_plan(spark: SparkSession) -> None:
    small = {
        "spark.sql.shuffle.partitions": 5,
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": 1000,
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": 2,
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": 500,
        "spark.sql.adaptive.coalescePartitions.enabled": False,
        "spark.sql.autoBroadcastJoinThreshold": -1,
    }
    key = F.when(F.col("id") % 2 == 0, 7).otherwise(F.col("id") % 60).alias("k")
    hot = spark.range(0, 4000, 1, 4).select(key, F.xxhash64("id").alias("a"))
    other = spark.range(0, 100, 1, 4).select(F.col("id").alias("k"), F.xxhash64("id").alias("b"))

    def run(how: str) -> dict[str, Any]:
        watch = Watch(spark)
        hot.join(other, "k", how).write.format("noop").mode("overwrite").save()
        return watch.facts()

    with ExitStack() as settings:
        for name, value in small.items():
            settings.enter_context(setting(spark, name, value))
        full = run("full")
        left = run("left")
    assert (full["operators"].get("OursSplit"), full["operators"].get("SparkSplit")) == (1, None)
    (described,) = full["splits"]
    assert described.startswith("1 partition in ")
    assert (left["operators"].get("OursSplit"), left["operators"].get("SparkSplit")) == (None, 1)
    assert "splits" not in left
    # Four whole partitions, the pieces and the residual.
    join = full["stages"][-1]
    pieces = int(described.split()[3])
    assert len(join["task_ms"]) == 4 + pieces + 1
    found = balance(full["stages"])
    assert found is not None and found["tasks"] == len(join["task_ms"])
