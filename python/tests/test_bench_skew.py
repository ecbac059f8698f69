"""The benchmark of joins with a hot key: tables, plans, goals, and the simulator's part."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import simulate as tool
import summary
from harness import data, hot_page, hot_tables, report
from harness.balance import balance
from harness.case import Goal, Point
from harness.cases import CASES, select
from harness.clusters import MB, Assumptions
from harness.costs import Cost
from harness.facts import Watch
from harness.hot_clusters import WAYS, RowBytes, SkewRules, layout, residual_limit, simulate
from harness.hot_costs import HotCosts, learn, runs_of
from harness.skew_cases import SKEW_CASES
from harness.variants import VARIANTS, arranged, expected_plan
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from stock import setting


def stage(number: int, parents: list[int], ms: list[float], rows: list[int]) -> dict[str, Any]:
    total = sum(rows)
    # 20 bytes of a row in the file, 10 in the shuffle.
    sizes = {"bytes_in": 20 * total, "rows_out": total, "bytes_out": 10 * total}
    about = {"stage": number, "parents": parents, "rows_in": total, **sizes}
    return {**about, "task_ms": ms, "task_rows": rows, "start_ms": 0, "end_ms": 0}


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


# A fixed part of 5 ms, and microseconds a row: of a scan, of a partition that is joined as it is,
# of the hot key's rows in one task, and of a piece.
SCAN, STOCK, OURS = 1.0, (2.0, 3.0), (1.0, 0.4, 1.25)
PARTITIONS, SLICES = 16, 8


def measured(variant: str, rows: int) -> dict[str, Any]:
    """What `run.py` would write of a join whose tasks cost just that, on one core.

    Keys are marked before the join in "split", which takes twice what the costs make of it.
    """
    hot, others = rows * (1 / 2 + 1 / 2 / PARTITIONS), rows / 4 / PARTITIONS
    cold = rows / 2 / PARTITIONS + others
    whole, of_hot = (STOCK if variant == "sortmerge" else OURS)[:2]
    tasks = [(cold, 5 + whole * cold / 1000)] * (PARTITIONS - 1)
    marked = variant == "split"
    of_heavy = 0.0 if marked else hot
    tasks.insert(5, (of_heavy + others, 5 + (whole * others + of_hot * of_heavy) / 1000))
    if variant != "sortmerge":
        joined = hot / SLICES + others
        tasks[5:5] = [(joined, 5 + OURS[2] * joined / 1000)] * SLICES
    scans = [
        stage(n, [], [5 + SCAN * size / 1000] * 2, [size // 2] * 2)
        for n, size in enumerate((rows, rows // 4))
    ]
    # Of two tasks each.
    for scan in scans:
        scan["task_ms"] = [5 + SCAN * n / 1000 for n in scan["task_rows"]]
    marks = []
    if marked:
        read = hot / SLICES + others
        ms = 2 * (5 + whole * others / 1000 + of_hot * hot / SLICES / 1000)
        marks = [stage(2, [0, 1], [ms] * SLICES, [round(read)] * SLICES)]
    join = stage(3, [0, 1], [ms for _, ms in tasks], [round(n) for n, _ in tasks])
    stages = [*scans, *marks, join]
    at = 0.0
    for each in stages:
        each["start_ms"], each["end_ms"] = at, at + sum(each["task_ms"])
        at = each["end_ms"]
    return {"family": "stock", "min": at / 1000, "stages": stages}


RUNS = ("sortmerge", "split-unmarked", "split")


def result(*rows: int, variants: tuple[str, ...] = RUNS) -> dict[str, Any]:
    shape = {"kind": "hot", "tables": 2, "how": "full", "swapped": False, "one_mapper": False}
    shape.update(partitions=PARTITIONS, load_before=0.0)
    found = [
        {**shape, "rows": n, "variants": {name: measured(name, n) for name in variants}}
        for n in rows
    ]
    return {
        "case": "skew-rows",
        "date": "2026-01-01",
        "machine": {"cpu": "any"},
        "versions": {"spark": "3.5.9"},
        "settings": {"cores": 1, "conf": {}},
        "points": found,
    }


def test_costs_of_a_hot_key_are_found_again() -> None:
    both = result(160_000, 1_600_000)
    stock, ours = (learn(runs_of(both, variant)) for variant in ("sortmerge", "split-unmarked"))
    for costs, (row, hot) in ((stock, STOCK), (ours, OURS[:2])):
        assert (costs.scan.fixed_ms, costs.scan.row_ms * 1000) == pytest.approx((5, SCAN), rel=1e-3)
        assert (costs.whole.fixed_ms, costs.whole.row_ms * 1000) == pytest.approx((5, row))
        assert costs.hot_ms * 1000 == pytest.approx(hot, rel=1e-3)
    assert stock.piece_ms is None
    assert ours.piece_ms is not None and ours.piece_ms * 1000 == pytest.approx(OURS[2], rel=1e-3)


def test_what_marking_took_is_set_against_what_it_should_take() -> None:
    both = result(160_000, 1_600_000)
    marked = runs_of(both, "split")
    assert all(run.marks and len(run.marks.task_rows) == SLICES for run in marked)
    ours = learn([*runs_of(both, "split-unmarked"), *marked])
    assert ours.mark_factor == pytest.approx(2, rel=1e-3)
    # 5 ms, a microsecond for each of the others and 0.4 for a row of the slice.
    assert ours.mark(100_000, 10_000) == pytest.approx(2 * (5 + 10 + 40), rel=1e-3)
    assert ours.piece_ms is not None and ours.piece_ms * 1000 == pytest.approx(OURS[2], rel=1e-3)
    # The residual after marking does not tell what one costs that reads the hot rows.
    with pytest.raises(ValueError, match="what one residual costs is not seen"):
        learn(marked)


def test_rows_of_other_slices_that_a_piece_drops_cost_what_they_cost_the_residual() -> None:
    both = result(160_000, 1_600_000)
    for point in both["points"]:
        join = point["variants"]["split-unmarked"]["stages"][-1]
        for n in range(5, 5 + SLICES):
            # Each reads its block with the slice of another one: twice the rows of the hot key.
            more = round(point["rows"] * (1 / 2 + 1 / 2 / PARTITIONS) / SLICES)
            join["task_rows"][n] += more
            join["task_ms"][n] += OURS[1] * more / 1000
    ours = learn(runs_of(both, "split-unmarked"))
    assert ours.piece_ms is not None and ours.piece_ms * 1000 == pytest.approx(OURS[2], rel=1e-2)


def test_a_run_whose_tasks_cannot_be_told_apart_is_refused() -> None:
    both = result(160_000, 1_600_000)
    unmarked, marked = (
        both["points"][0]["variants"][name]["stages"] for name in ("split-unmarked", "split")
    )
    heavy = unmarked[-1]["task_rows"].index(max(unmarked[-1]["task_rows"]))
    unmarked[-1]["task_rows"][heavy] = 2500
    with pytest.raises(ValueError, match="not one task has all rows of the hot key"):
        runs_of(both, "split-unmarked")
    residual = marked[-1]["task_rows"].index(min(marked[-1]["task_rows"]))
    marked[-1]["task_rows"][residual] = 5000
    with pytest.raises(ValueError, match="no residual is without hot rows"):
        runs_of(both, "split")


def cost(fixed_ms: float, row_ms: float) -> Cost:
    return Cost(fixed_ms, row_ms, range=(1, 1000), fit=(1, 1), spread=(1.0,))


# Rows of a byte: 800,000 with the hot key, 800,000 others, 400,000 in the other table.
SIZE = RowBytes((1.0, 1.0), (1.0, 1.0))
GIVEN = Assumptions(
    rows=1_600_000,
    hot_share=0.5,
    split_bytes=100_000,
    advisory_bytes=100_000,
    least_bytes=1,
    node_cores=10_000,
    task_ms=0,
    stage_ms=0,
    query_ms=0,
)
RULES = SkewRules(threshold_bytes=200_000)
COSTS = HotCosts(cost(0, 0.001), cost(0, 0.01), hot_ms=0.002, piece_ms=0.01)


def test_partitions_and_slices_by_hand() -> None:
    found = layout(SIZE, 1, GIVEN, RULES)
    # 1,200,000 bytes besides those of the hot key in pieces of 100,000.
    assert found.partitions == 12
    assert found.others == pytest.approx(400_000 / 12)
    assert found.whole == pytest.approx(1_200_000 / 12)
    assert found.hot == pytest.approx(800_000 + 800_000 / 12)
    assert (found.slices, found.dropped) == (9, 0)
    # A residual of 33,333 + 0.3 x 866,667, against marks of 0.3 x 322,222 and pieces of 129,630.
    assert found.marks == 3
    assert layout(SIZE, 1, GIVEN, replace(RULES, marking_gain=1.4)).marks == 0
    # No more slices than allowed, and none of what is not skewed.
    assert layout(SIZE, 1, GIVEN, replace(RULES, max_slices=4)).slices == 4
    assert layout(SIZE, 1, GIVEN, replace(RULES, threshold_bytes=900_000)).slices == 0
    assert layout(SIZE, 1, replace(GIVEN, hot_share=0.05), RULES).slices == 0
    # Of a table that one map task has written, every slice reads the whole block.
    one = layout(SIZE, 1, replace(GIVEN, split_bytes=10 * MB), RULES)
    assert one.dropped == pytest.approx(one.hot * 8 / 9)
    assert one.marks == 0
    # Each slice reads the other table's part again: fewer where that would be too much work.
    fewer = layout(SIZE, 1, GIVEN, replace(RULES, max_reread=1.45))
    assert 2 <= fewer.slices < 9


def test_the_four_ways_by_hand() -> None:
    found = {way: simulate(way, COSTS, SIZE, 1000, GIVEN, RULES) for way in WAYS}
    # On 1000 cores partitions have 2000 bytes: 600 of them, with 667 rows of the other table.
    cut = layout(SIZE, 1000, GIVEN, RULES)
    assert (cut.partitions, cut.slices) == (600, 9)
    scan = 0.1
    hot, others = cut.hot, cut.others
    stock = scan + 1e-5 * others + 2e-6 * hot
    assert found["stock"]["seconds"] == pytest.approx(stock, abs=2e-3)
    assert found["residual"]["residual_s"] == pytest.approx(1e-5 * others + 2e-6 * hot, abs=1e-3)
    piece = 1e-5 * (hot / 9 + others)
    assert found["residual"]["longest_piece_s"] == pytest.approx(piece, abs=1e-3)
    assert found["residual"]["seconds"] == pytest.approx(
        scan + max(piece, found["residual"]["residual_s"]), abs=2e-3
    )
    assert cut.marks == found["marking"]["marks"] == 3
    mark = 1e-5 * others + 2e-6 * hot / 3
    assert found["marking"]["longest_mark_s"] == pytest.approx(mark, abs=1e-3)
    assert found["marking"]["residual_s"] == pytest.approx(1e-5 * others, abs=1e-3)
    assert found["marking"]["seconds"] == pytest.approx(scan + mark + piece, abs=2e-3)
    assert found["even"]["slices"] == 0
    assert found["even"]["seconds"] <= min(run["seconds"] for run in found.values())


def test_from_how_many_cores_on_the_residual_is_the_last() -> None:
    assert residual_limit({"residual_s": None, "join_work_s": 10.0}) is None
    # Nine seconds of others beside one second: with ten cores they end together.
    assert residual_limit({"residual_s": 1.0, "join_work_s": 10.0}) == 10
    slow = replace(COSTS, hot_ms=0.005)
    limit = residual_limit(simulate("residual", slow, SIZE, 8, GIVEN, RULES))
    assert limit is not None
    even = replace(GIVEN, least_bytes=GIVEN.advisory_bytes)
    join = {n: simulate("residual", slow, SIZE, n, even, RULES) for n in (2, limit, 8 * limit)}
    residual = join[2]["residual_s"]
    assert join[2]["join_s"] > 1.2 * residual
    assert join[8 * limit]["join_s"] == pytest.approx(residual, abs=1e-3)


def test_the_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "results"
    directory.mkdir()
    text = json.dumps(result(160_000, 1_600_000))
    (directory / "skew-rows.json").write_text(text)
    written = []
    for out in (tmp_path / "a", tmp_path / "b"):
        assert tool.main(["--skew", str(directory), "--out", str(out)]) == 0
        written.append({path.name: path.read_bytes() for path in out.iterdir()})
    names = {f"skew-simulation.{ending}" for ending in ("json", "md", "svg")}
    assert set(written[0]) == names
    assert written[0] == written[1]
    found = json.loads(written[0]["skew-simulation.json"])
    assert [run["variant"] for run in found["repeated"][::2]] == [
        "sortmerge",
        "split-unmarked",
        "split, keys marked",
    ]
    for run in found["repeated"]:
        assert run["model_over_measured"] == pytest.approx(1, abs=0.02), run
    assert found["left_out"] == []
    for join in found["joins"]:
        for each in join["sweep"]:
            for way in WAYS:
                assert each[way]["seconds"] >= each[way]["work_s"] / each["cores"] - 0.1
                assert each[way]["seconds"] >= each[way]["longest_task_s"]
            assert each["residual"]["seconds"] <= each["stock"]["seconds"] * 1.02
    largest = found["joins"][-1]
    assert largest["compared"]["marking"]["seconds"] < largest["compared"]["residual"]["seconds"]
    assert largest["residual_decides_from"] < 1000
    page = written[0]["skew-simulation.md"].decode()
    assert hot_page.block(found).splitlines()[2] in page
    (directory / "skew-rows.json").write_text(json.dumps(result(1000, variants=("split",))))
    assert tool.main(["--skew", str(directory)]) == 1
    assert "nothing measured for stock" in capsys.readouterr().err


def test_the_page_says_what_the_simulation_says() -> None:
    path = summary.RESULTS / "skew-simulation.json"
    block = hot_page.block(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else ""
    text = tool.SKEW_PAGE.read_text(encoding="utf-8")
    said = summary.with_block(text, block, "simulate.py")
    assert said == text, "run bench/simulate.py --skew"
