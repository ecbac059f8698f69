"""The simulator of a hot key: what it learns of costs, and what it makes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import simulate as tool
import summary
from harness import hot_page
from harness.clusters import MB, Assumptions
from harness.costs import Cost
from harness.hot_clusters import WAYS, RowBytes, SkewRules, layout, residual_limit, simulate
from harness.hot_costs import HotCosts, learn, runs_of
from stages import stage

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
