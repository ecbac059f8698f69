"""The simulator of clusters: what it learns from measured stages, and what it makes of it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import cluster
import pytest
import simulate as tool
from harness.clusters import Assumptions, Model, Node, model, pieces, simulate
from harness.costs import Cost, Sample, fit, line, samples
from harness.facts import Watch
from pyspark.sql import SparkSession
from stock import setting

from pyspark_skewext import multi_full_join


def sample(ms: list[float], rows: list[int], kind: str = "scan") -> Sample:
    return Sample(kind, (), sum(rows), 0, 0, 0, tuple(ms), tuple(rows))


def test_a_line_is_found_again() -> None:
    assert line([(x, 20 + 0.5 * x) for x in (10, 1000, 70_000)]) == pytest.approx((20, 0.5))


def test_neither_part_of_a_cost_is_negative() -> None:
    # Through the origin, with the least relative squares: (1/1 + 1/1.5) / (1/1 + 1/2.25) a row.
    assert line([(1, 1), (2, 3)]) == pytest.approx((0.0, (1 + 2 / 3) / (1 + 4 / 9)))
    # Less for more rows: only the fixed part is left.
    assert line([(1, 4), (2, 2)]) == pytest.approx((0.75 / 0.3125, 0.0))


def test_costs_need_two_scales() -> None:
    with pytest.raises(ValueError, match="scan: tasks of one size only"):
        fit([sample([10, 11], [100, 100]), sample([12], [110])])


def test_spread_is_of_large_tasks_and_of_equal_size() -> None:
    # 10 ms and 0.1 ms a row; the last task is half as large as the median one and not slow.
    large = sample([110, 220, 110, 60], [1000, 1000, 1000, 500])
    # A stage of small tasks, one of them ten times as slow.
    small = sample([20, 20, 200], [100, 100, 100])
    cost = fit([large, small])
    assert (cost.fixed_ms, cost.row_ms) == pytest.approx((10, 0.1))
    assert cost.spread == pytest.approx((1, 1, 1, 2))
    assert cost.range == (100, 1000)
    assert cost.ms(2000) == pytest.approx(210)


def stage(number: int, parents: list[int], **figures: Any) -> dict[str, Any]:
    usual = {"rows_in": 0, "bytes_in": 0, "rows_out": 0, "bytes_out": 0}
    lists: dict[str, Any] = {"task_ms": [1], "task_rows": [1]}
    return {"stage": number, "parents": parents, **usual, **lists, **figures}


def kinds(*stages: dict[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    return [(found.kind, found.parents) for found in samples(stages, tables=4)]


def test_stages_are_told_apart_by_what_they_join() -> None:
    scans = [stage(number, []) for number in (3, 4, 5, 6)]
    scan = ("scan", ())
    chain = [stage(8, [3, 4]), stage(11, [8, 5]), stage(15, [11, 6])]
    joins = [("join of 2", (0, 1)), ("join of 3", (4, 2)), ("join of 4", (5, 3))]
    assert kinds(*scans, *chain) == [scan] * 4 + joins
    bushy = [stage(8, [3, 4]), stage(9, [5, 6]), stage(12, [8, 9])]
    joins = [("join of 2", (0, 1)), ("join of 2", (2, 3)), ("join of 4", (4, 5))]
    assert kinds(*scans, *bushy) == [scan] * 4 + joins
    assert kinds(*scans, stage(8, [3, 4, 5, 6])) == [scan] * 4 + [("join of 4", (0, 1, 2, 3))]
    # A union is scanned in one stage.
    assert kinds(stage(3, []), stage(4, [3])) == [("scan of 4", ()), ("join of 4", (0,))]


def test_pieces_are_as_spark_cuts_them() -> None:
    # As many bytes as advised, ...
    assert pieces(1000, most=64, least=1, cores=4) == 16
    # ... fewer where cores were idle otherwise, ...
    assert pieces(1000, most=64, least=1, cores=100) == 100
    # ... but no tiny ones.
    assert pieces(1000, most=64, least=20, cores=100) == 50
    assert pieces(0, most=64, least=20, cores=100) == 1


def plain(fixed_ms: float, row_ms: float, spread: tuple[float, ...] = (1.0,)) -> Cost:
    return Cost(fixed_ms, row_ms, range=(1, 1000), fit=(1, 1), spread=spread)


def two_tables(spread: tuple[float, ...] = (1.0,)) -> Model:
    scan = Node("scan", (), 1, 100, 1, 50, first_table=True)
    other = Node("scan", (), 1, 100, 1, 50, first_table=False)
    join = Node("join of 2", (0, 1), 2, 100, 0, 0, first_table=True)
    costs = {"scan": plain(10, 1, spread), "join of 2": plain(20, 0.5, spread)}
    return Model((scan, other, join), costs)


SMALL = Assumptions(
    rows=1000,
    split_bytes=25_000,
    advisory_bytes=50_000,
    least_bytes=1,
    node_cores=2,
    task_ms=0,
    stage_ms=0,
    query_ms=100,
)


def test_a_join_by_hand() -> None:
    found = simulate(two_tables(), 2, SMALL)
    # Eight scan tasks of 250 rows and 260 ms in four waves, two join tasks of 1000 rows and 520 ms.
    assert found["seconds"] == pytest.approx(0.1 + 4 * 0.26 + 0.52)
    assert (found["tasks"], found["waves"]) == (10, 5)
    assert found["work_s"] == pytest.approx(8 * 0.26 + 2 * 0.52, abs=0.05)
    assert found["shuffled_bytes"] == 100_000
    assert [s["tasks"] for s in found["stages"]] == [4, 4, 2]
    assert [s["task_rows"] for s in found["stages"]] == [250, 250, 1000]


def test_a_slow_network_by_hand() -> None:
    # Two nodes; half of 100,000 bytes cross a network that carries 2 x 25,000 in a second.
    slow = Assumptions(**{**vars(SMALL), "node_cores": 1, "node_gbit": 25_000 * 8 / 1e9})
    assert simulate(two_tables(), 2, slow)["seconds"] == pytest.approx(0.1 + 4 * 0.26 + 1.0)


def test_a_hot_key_stays_in_one_task() -> None:
    skewed = Assumptions(**{**vars(SMALL), "hot_share": 0.5})
    # 500 rows more in one of the two tasks that share the other 1500.
    found = simulate(two_tables(), 2, skewed)
    assert found["stages"][-1]["longest_task_s"] == pytest.approx(
        0.020 + 0.5 * (0.75 + 0.5), abs=0.01
    )
    assert found["seconds"] == pytest.approx(0.1 + 4 * 0.26 + 0.645)
    # More cores do not help it.
    many = simulate(two_tables(), 2000, skewed)
    assert many["stages"][-1]["longest_task_s"] >= 0.25


def test_slow_tasks_come_as_often_as_they_were_measured() -> None:
    large = Assumptions(**{**vars(SMALL), "rows": 10_000_000, "split_bytes": 100_000})
    even = simulate(two_tables(), 50, large)["work_s"]
    # One task in four takes three times as long: half as much work again.
    uneven = simulate(two_tables((1.0, 1.0, 1.0, 3.0)), 50, large)["work_s"]
    assert uneven / even == pytest.approx(1.5, rel=0.03)


def test_rows_and_bytes_come_from_the_largest_run() -> None:
    def run(rows: int) -> tuple[int, list[Sample]]:
        # Files have a fixed part too; in the largest it matters least.
        each = {
            "rows_in": rows,
            "rows_out": rows,
            "bytes_in": 3 * rows + 4000,
            "bytes_out": 2 * rows,
        }
        tasks: dict[str, Any] = {"task_ms": [10 + rows / 100], "task_rows": [rows]}
        scans = [stage(n, [], **each, **tasks) for n in (0, 1)]
        both: dict[str, Any] = {"rows_in": 2 * rows, "bytes_in": 4 * rows, "rows_out": rows // 2}
        both.update(task_ms=[20 + rows / 50], task_rows=[2 * rows])
        return rows, samples([*scans, stage(2, [0, 1], **both)], tables=2)

    found = model([run(4000), run(1000)])
    assert [(n.kind, n.rows_in, n.bytes_in, n.rows_out, n.bytes_out) for n in found.nodes] == [
        ("scan", 1, 4, 1, 2),
        ("scan", 1, 4, 1, 2),
        ("join of 2", 2, 4, 0.5, 0),
    ]
    assert [node.first_table for node in found.nodes] == [True, False, True]
    assert found.costs["scan"].row_ms == pytest.approx(1 / 100)
    assert found.costs["join of 2"].fixed_ms == pytest.approx(20)
    # Others' scans count only where the variant's own do not suffice.
    others = [sample([1000], [100]), sample([10_000], [1000])]
    assert model([run(4000), run(1000)], others) == found


def test_scans_of_one_size_take_their_cost_from_others() -> None:
    tasks: dict[str, Any] = {"task_ms": [20, 20], "task_rows": [1000, 1000]}
    scans = [stage(n, [], **tasks) for n in (0, 1)]

    def run(ms: list[int], rows: list[int]) -> tuple[int, list[Sample]]:
        join = stage(2, [0, 1], task_ms=ms, task_rows=rows)
        return 2000, samples([*scans, join], tables=2)

    runs = [run([10], [100]), run([19], [1000])]
    with pytest.raises(ValueError, match="scan: tasks of one size only"):
        model(runs)
    found = model(runs, [sample([30], [2000])])
    assert found.costs["scan"].ms(1500) == pytest.approx(25)
    assert found.costs["join of 2"].ms(500) == pytest.approx(14)


CHAIN = [[], [], [0, 1], [], [], [2, 3, 4]]
AT_ONCE = [[], [], [], [], [0, 1, 2, 3]]


def write_results(directory: Path, *, scales: tuple[int, ...] = (1000, 100_000)) -> None:
    """What `run.py` would have written on a machine with one core.

    A row of a scan costs 10 microseconds there, one of a join twice as much in the chain.
    """
    directory.mkdir()
    chance = random.Random(0)

    def measured(family: str, rows: int, row_ms: float, plan: list[list[int]]) -> dict[str, Any]:
        at = 0.0
        stages = []
        for number, parents in enumerate(plan):
            size = rows * max(1, 2 * len(parents))
            each = 5 + size / 2 * (row_ms if parents else 0.01)
            spans = [each * chance.choice((1, 1, 1.1)) for _ in range(2)]
            about = {"rows_in": size, "bytes_in": 40 * size, "rows_out": size}
            times = {"start_ms": round(at + 7), "end_ms": round(at + 7 + sum(spans))}
            lists: dict[str, Any] = {"task_ms": [round(s) for s in spans]}
            lists.update(task_rows=[size // 2] * 2, bytes_out=30 * size)
            stages.append(stage(number, parents, **about, **times, **lists))
            at += 7 + sum(spans)
        return {"family": family, "min": (at + 20) / 1000, "stages": stages}

    shape = {"kind": "string", "tables": 4, "shape": "all", "heap": None, "label": "N=4"}
    failed = {"family": "stock", "failed": "out of memory"}
    for rows in scales:
        variants = {
            "sortmerge": measured("stock", rows, 0.02, CHAIN),
            "ours": measured("ours", rows, 0.01, AT_ONCE),
            "floor": {"family": "bound", "min": 1.0},
            "shufflehash": failed,
            # As one that was dropped at the larger scale.
            "union": measured("stock", rows, 0.001, [[], [0]]) if rows == 1000 else failed,
        }
        result = {
            "case": f"x{rows}",
            "date": "2026-01-01",
            "machine": {"cpu": "any"},
            "versions": {"spark": "3.5.9"},
            "settings": {"cores": 1, "conf": {}},
            "points": [{**shape, "rows": rows, "partitions": 2, "variants": variants}],
        }
        (directory / f"x{rows}.json").write_text(json.dumps(result))


def test_the_tool(tmp_path: Path) -> None:
    write_results(tmp_path / "results")
    written = []
    for out in (tmp_path / "a", tmp_path / "b"):
        assert tool.main([str(tmp_path / "results"), "--out", str(out), "--rows", "3e8"]) == 0
        written.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert set(written[0]) == {"simulation.json", "simulation.md", "simulation.svg"}
    # The same results, the same files.
    assert written[0] == written[1]
    found = json.loads(written[0]["simulation.json"])
    assert found["assumptions"]["rows"] == 300_000_000
    shapes = [(c["executors"], c["executor_cores"], c["cores"]) for c in found["clusters"]]
    assert shapes == [(20, 3, 60), (50, 5, 250), (50, 8, 400), (400, 5, 2000)]
    for each in found["clusters"] + found["sweep"]:
        for family in ("stock", "ours"):
            run = each[family]
            assert run["seconds"] >= run["work_s"] / each["cores"]
            assert run["seconds"] >= max(s["longest_task_s"] for s in run["stages"])
    # Up to where the driver is the limit.
    seconds = [c["ours"]["seconds"] for c in found["sweep"] if c["cores"] <= 1000]
    assert seconds == sorted(seconds, reverse=True)
    # The laws are the same for all rows, so the model says what they say.
    assert len(found["repeated"]) == 4
    for run in found["repeated"]:
        assert 0.8 < run["model_over_measured"] < 1.2, run
    assert {cluster["stock"]["variant"] for cluster in found["sweep"]} == {"sortmerge"}
    assert [reason.split(":")[0] for reason in found["left_out"]] == ["union"]
    assert found["small_cluster"] is None
    assert "(assumed)" in written[0]["simulation.md"].decode()


def test_the_tool_takes_the_driver_of_the_small_cluster(tmp_path: Path) -> None:
    write_results(tmp_path / "results")
    figures = {"one_s": 3.0, "two_s": 2.0, "model_two_own_tasks_s": 2.1}
    figures.update(faster=1.5, model_faster=1.625)
    measured = {
        "driver_ms_per_task": 1.25,
        "date": "2026-01-01",
        "rows": 10,
        "measured": {"1": {"load_before": 0.25}, "2": {"load_before": 1.5}},
        "variants": {"ours": figures},
    }
    (tmp_path / "results" / "cluster.json").write_text(json.dumps(measured))
    assert tool.main([str(tmp_path / "results")]) == 0
    found = json.loads((tmp_path / "results" / "simulation.json").read_text())
    assert found["assumptions"]["task_ms"] == 1.25
    page = (tmp_path / "results" / "simulation.md").read_text()
    assert "driver, ms a task (measured) | 1.25" in page
    assert "| ours | 3.00 | 2.00 | 2.10 | 1.50 | 1.62 |" in page
    assert "Load of the machine before: 1.5." in page
    assert tool.main([str(tmp_path / "results"), "--driver-ms", "0"]) == 0
    found = json.loads((tmp_path / "results" / "simulation.json").read_text())
    assert found["assumptions"]["task_ms"] == 0


def test_two_workers_by_hand() -> None:
    tasks = {"task_ms": [1000, 1000], "task_rows": [10, 10]}
    scans = [stage(n, [], start_ms=2000 * n, end_ms=2000 * (n + 1), **tasks) for n in (0, 1)]
    lonely = {"task_ms": [3000], "task_rows": [10]}
    join = stage(2, [0, 1], start_ms=4100, end_ms=7100, **lonely)
    run = {"family": "ours", "min": 7.5, "stages": [*scans, join]}
    # On two: half of the scans' four seconds, and the same for the gap, the join and the rest.
    assert cluster.simulated_seconds(run, 1, 0) == pytest.approx(7.5)
    assert cluster.simulated_seconds(run, 2, 0) == pytest.approx(2 + 0.1 + 3 + 0.4)
    # As measured on two: 2.1 seconds until the join.
    halves = [{**scan, "start_ms": 0, "end_ms": 2000} for scan in scans]
    two = {"min": 5.5, "stages": [*halves, {**join, "start_ms": 2100, "end_ms": 5100}]}
    points = ({"variants": {"ours": run}}, {"variants": {"ours": two}})
    assert cluster.compare(*points, 0)["ours"] == {
        "one_s": 7.5,
        "two_s": 5.5,
        "model_one_s": 7.5,
        "model_two_s": 5.5,
        "model_two_own_tasks_s": 5.5,
        "faster": 1.364,
        "model_faster": 1.364,
    }


def test_the_tool_says_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_results(tmp_path / "results", scales=(1000,))
    assert tool.main([str(tmp_path / "results")]) == 1
    assert "not enough measured for stock and ours" in capsys.readouterr().err
    other = json.loads((tmp_path / "results" / "x1000.json").read_text())
    other["settings"]["cores"] = 2
    (tmp_path / "results" / "y.json").write_text(json.dumps({**other, "case": "y"}))
    assert tool.main([str(tmp_path / "results")]) == 1
    assert "1 cores of any; 2 cores of any" in capsys.readouterr().err


def test_stages_are_recorded_with_what_they_read(spark: SparkSession) -> None:
    inputs = [spark.range(0, 40 + i, 1, 2).withColumnRenamed("id", "k") for i in range(3)]

    def recorded(chain: bool) -> list[dict[str, Any]]:
        frame = multi_full_join(*inputs, on="k")
        if chain:
            frame = inputs[0].join(inputs[1], "k", "full").join(inputs[2], "k", "full")
        watch = Watch(spark)
        frame.write.format("noop").mode("overwrite").save()
        facts = watch.facts()
        assert [len(s["task_ms"]) for s in facts["stages"]] == facts["tasks"]
        assert sum(s["bytes_out"] for s in facts["stages"]) == facts["shuffle_bytes"]
        stages: list[dict[str, Any]] = facts["stages"]
        return stages

    ours = recorded(chain=False)
    assert [s.kind for s in samples(ours, 3)] == ["scan", "scan", "scan", "join of 3"]
    assert ours[-1]["parents"] == [s["stage"] for s in ours[:-1]]
    assert sorted(s["rows_out"] for s in ours[:-1]) == [40, 41, 42]
    assert ours[-1]["rows_in"] == sum(ours[-1]["task_rows"]) == 123
    with setting(spark, "spark.skewext.enabled", "false"):
        chain = recorded(chain=True)
    by_number = {s["stage"]: s for s in chain}
    joins = [s for s in chain if s["parents"]]
    assert [s.kind for s in samples(chain, 3) if s.parents] == ["join of 2", "join of 3"]
    for join in joins:
        assert join["rows_in"] == sum(by_number[p]["rows_out"] for p in join["parents"])
        assert join["start_ms"] >= max(by_number[p]["end_ms"] for p in join["parents"])
    assert joins[0]["stage"] in joins[1]["parents"]
