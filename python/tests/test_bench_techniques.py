"""The benchmark of `skew_join`: what plans must have, which cells are timed again, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import plot
import pytest
import summary
from harness import data, hot_tables, measure, report, technique_page
from harness.case import Goal
from harness.measure import Figures
from harness.technique_cases import HOWS, TECHNIQUE_CASES
from harness.technique_plans import TECHNIQUES
from harness.variants import VARIANTS, expected_plan, suits
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

HOT, ZIPF, BOTH = TECHNIQUE_CASES


def test_a_cell_for_every_technique_and_join() -> None:
    for case in TECHNIQUE_CASES:
        assert case.variants == ("sortmerge", *TECHNIQUES)
        assert [point.how for point in case.points] == list(HOWS)
        for point in case.points:
            left_out = [name for name in case.variants if not suits(VARIANTS[name], point)]
            assert left_out == (["broadcast"] if point.how == "full" else [])


def test_plans_of_techniques() -> None:
    full, left = HOT.points[:2]
    ours = {"MultiFullJoin": 1, "Exchange": 2, "OursSplit": 1, "SparkSplit": 0}
    assert expected_plan(VARIANTS["adaptive"], full) == ours
    # `auto` must do what it says that it does.
    assert expected_plan(VARIANTS["auto"], full, "adaptive") == ours
    stock, adaptive = (expected_plan(VARIANTS[name], left) for name in ("sortmerge", "adaptive"))
    assert stock is not None and adaptive is not None
    assert adaptive["SparkSplit"] == stock["SparkSplit"] == 1
    salted = expected_plan(VARIANTS["salted"], full)
    assert salted is not None
    assert measure._compare(salted, {"SaltKeys": 2, "SortMergeJoin": 1, "Exchange": 2}) is None
    problem = measure._compare(salted, {"SortMergeJoin": 1, "ShuffledHashJoin": 1})
    assert problem == "plan has 0 SaltKeys for 2, 1 ShuffledHashJoin for 0"
    chunks = expected_plan(VARIANTS["iterative_broadcast"], full)
    assert chunks is not None
    problem = measure._compare(chunks, {"SortMergeJoin": 1})
    assert problem is not None and "0 BroadcastHashJoin for range(1, 100)" in problem


def test_what_is_timed_again() -> None:
    seconds = {"sortmerge": 9.0, "auto": 8.0, "adaptive": 2.0, "salted": 2.4, "broadcast_map": 2.6}
    figures = [Figures(VARIANTS[name], seconds=[each]) for name, each in seconds.items()]
    again = [each.variant.name for each in measure._of_consequence(figures)]
    assert again == ["sortmerge", "auto", "adaptive", "salted"]


def cell(seconds: float, **more: Any) -> dict[str, Any]:
    balance = {"longest_ms": 200, "median_ms": 100, "ratio": 2.0}
    facts = {"family": "technique", "min": seconds, "balance": balance, **more}
    return {"peak_task_memory_bytes": 3 << 20, **facts}


def result(case: str, auto: float) -> dict[str, Any]:
    variants = {
        "sortmerge": {**cell(4.0), "family": "stock"},
        "auto": cell(auto, technique="adaptive"),
        "adaptive": cell(2.0),
        "broadcast": {"family": "technique", "refused": "too large"},
    }
    goals = [Goal("auto", "sortmerge", "<=", 1.1, quantity="every")]
    points = [{"label": "full", "rows": 80, "axis": None, "variants": variants}]
    judged = [report.judge(goal, points) for goal in goals]
    return {"case": case, "about": case, "axis": None, "goals": judged, "points": points}


def test_the_page() -> None:
    results = [result("technique-hot", 2.2), result("technique-zipf", 5.0)]
    head, full = technique_page.rows(results[0])
    assert head == ["[technique-hot](technique-hot.json)", "stock", *TECHNIQUES]
    cells = dict(zip(head, full))
    assert cells["stock"] == "4.00 s<br>2.0<br>3 MB"
    assert cells["auto"] == "2.20 s (1.82)<br>`adaptive`<br>2.0<br>3 MB"
    assert cells["adaptive"] == "**2.00 s (2.00)**<br>2.0<br>3 MB"
    assert cells["broadcast"] == "refuses"
    assert cells["salted"] == "as `broadcast_map`"
    assert technique_page.goals(results) == [
        "* technique-hot: auto / sortmerge <= 1.1 in every row: reached, is 0.55",
        "* technique-zipf: auto / sortmerge <= 1.1 in every row: not reached, is 1.25",
        "* `auto` within 15% of the best technique in 9 of 10 joins: not reached, it is in 1 of 2",
    ]
    assert technique_page.refusals(results) == [
        "* `broadcast`: too large (full of `technique-hot`, full of `technique-zipf`)"
    ]
    page = summary._technique_page(results, "../")
    assert page.startswith("![") and "../techniques.svg" in page and "| full |" in page
    assert summary._technique_page([], "../") == ""


def test_a_goal_about_every_row_wants_all_of_them() -> None:
    points = result("technique-hot", 2.2)["points"]
    goal = Goal("auto", "sortmerge", "<=", 1.1, quantity="every")
    assert report.judge(goal, points)["reached"] is True
    del points[0]["variants"]["auto"]["min"]
    assert report.judge(goal, points)["reached"] is None


def test_the_heat_map(tmp_path: Path) -> None:
    results = [result("technique-hot", 2.2), result("technique-zipf", 5.0)]
    text = plot._draw_techniques(results, tmp_path).read_text(encoding="utf-8")
    # Glyphs are drawn, the text is in comments.
    for shown in ("1.82", "2.00", "0.80", "refuses", "full"):
        assert f"<!-- {shown} -->" in text


def test_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    rows = 8000
    key = F.col("device_id")
    for kind in ("zipf", "both"):
        for table in (0, 1):
            data.generate(spark, tmp_path, kind, rows, table)
    left, right = data.read(spark, tmp_path, "zipf", rows, 2)
    places = [row["n"] for row in left.groupBy(key).agg(F.count("*").alias("n")).collect()]
    first, second, third = sorted(places, reverse=True)[:3]
    assert sum(places) == rows
    for found, place in ((first, 1), (second, 2), (third, 3)):
        assert found / rows == pytest.approx(place**-1.5 / hot_tables.ZETA, rel=0.1)
    assert right.count() == right.distinct().count() == rows // 4
    matched = {row[0] for row in left.join(right, "device_id").select(key).distinct().collect()}
    assert 0 < len(matched) < len(places)
    left, right = data.read(spark, tmp_path, "both", rows, 2)
    copies = hot_tables.both_copies(rows)
    for side, size in ((left, rows), (right, rows // 4)):
        assert side.count() == size
        assert side.where(key == hot_tables.HOT).count() == copies
    assert copies**2 == pytest.approx(25_000_000 * rows / 8_000_000, rel=0.02)
    assert hot_tables.both_copies(8_000_000) == 5000
    assert 0 < left.join(right, "device_id").where(key != hot_tables.HOT).count() < rows // 4
