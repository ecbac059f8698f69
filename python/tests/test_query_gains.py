"""The estimate of what joins of stock Spark would gain, from figures as the JVM gives them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_query_report import MB, figures, made

from pyspark_skewext import _jar
from pyspark_skewext.report import QueryReport

STOCK = {"skewext_loaded": False, "extensions": ""}
EVEN = {"slowest": figures(3, 900 * MB), "uneven": 0}
TWO_ROWS = (4_000_000, 1_000_000)


def given(rows: int | None, stage: int | None, chained: bool = False) -> dict[str, Any]:
    return {"rows": rows, "shuffled": stage is not None, "stage": stage, "chained": chained}


def join(stage: int = 7, **changes: Any) -> dict[str, Any]:
    plain = {
        "stage": stage,
        "operator": "SortMergeJoin",
        "keys": ["k"],
        "condition": None,
        "inputs": [given(rows, n) for n, rows in enumerate(TWO_ROWS)],
    }
    return {**plain, **changes}


def work(stage: int, seconds: float = 20, **changes: Any) -> dict[str, Any]:
    rows = ("scanned", "read", "written", "output", "aggregated", "joined")
    sizes = {"written_bytes": 100 * MB, "disk_spilled": 0}
    none = {f"{name}_rows": 0 for name in rows}
    return {"stage": stage, "run_ms": 1000 * seconds, "is_known": True, **none, **sizes, **changes}


def writer(stage: int, rows: int, seconds: float = 5, **changes: Any) -> dict[str, Any]:
    return work(stage, seconds, scanned_rows=rows, written_rows=rows, **changes)


WRITERS = [writer(n, rows) for n, rows in enumerate(TWO_ROWS)]
READER = work(7, read_rows=sum(TWO_ROWS), joined_rows=4_000_000)
PLAIN = [*WRITERS, READER]
LOOP = join(
    operator="BroadcastNestedLoopJoin",
    keys=None,
    condition="range",
    inputs=[given(1_000_000, None), given(10_000, None)],
)
LOOPED = [work(7, 200, scanned_rows=1_000_000, joined_rows=2_000_000)]


def report(
    joins: list[dict[str, Any]], works: list[dict[str, Any]], **arguments: Any
) -> QueryReport:
    settings = {**STOCK, **arguments.pop("settings", {})}
    return made(join_work=joins, stage_work=works, settings=settings, **{**EVEN, **arguments})


def saved(joins: list[dict[str, Any]], works: list[dict[str, Any]], **arguments: Any) -> float:
    return sum(each.saved_seconds for each in report(joins, works, **arguments).gains)


def test_a_join_of_two_sides() -> None:
    (gain,) = report([join()], PLAIN).gains
    # Scans stay, and so does the time that output rows take: 16 of 20 s, and 3 of 5 twice.
    assert 22 < gain.task_seconds < 26
    assert gain.saved_seconds == pytest.approx(0.66 * gain.task_seconds)
    assert gain.earlier_seconds == 0
    hash_join = report([join(operator="ShuffledHashJoin")], PLAIN).gains[0]
    assert 0.5 * gain.saved_seconds < hash_join.saved_seconds < gain.saved_seconds


def test_only_the_share_of_shuffle_sort_and_join_counts() -> None:
    whole = saved([join()], PLAIN)
    more = {
        "aggregated_rows": 4_000_000,
        "output_rows": 4_000_000,
        "scanned_rows": 9_000_000,
        "written_rows": 4_000_000,
    }
    for name, rows in more.items():
        assert saved([join()], [*WRITERS, {**READER, name: rows}]) < whole, name
    # The time of a stage is not divided if its operators may take any time.
    assert saved([join()], [*WRITERS, {**READER, "is_known": False}]) < 0.4 * whole
    # Two joins that read one shuffle share the time of its write.
    half = report([join(7), join(8)], [*PLAIN, {**READER, "stage": 8}]).gains[0]
    assert half.task_seconds < report([join()], PLAIN).gains[0].task_seconds - 2.5


def test_a_chain_saves_the_shuffle_of_its_results() -> None:
    rows = (4_000_000, 4_000_000)
    works = [*WRITERS, work(7, read_rows=sum(rows), written_rows=4_000_000), READER | {"stage": 9}]
    plain = join(9, inputs=[given(4_000_000, 7), given(4_000_000, 1)])
    chain = join(9, inputs=[given(4_000_000, 7, chained=True), given(4_000_000, 1)])
    one, other = (report([join(), each], works) for each in (plain, chain))
    assert other.gains[0].task_seconds == one.gains[0].task_seconds
    assert other.gains[0].saved_seconds > 1.2 * one.gains[0].saved_seconds
    text = " ".join(str(other).split())
    assert "one operator for the chain shuffles each table once (docs/rewrite.md)" in text


@pytest.mark.parametrize(
    ("joins", "works", "arguments"),
    [
        # Broadcast joins are no work.
        ([], [], {}),
        ([join(inputs=[given(None, 0), given(5, 1)])], PLAIN, {}),
        ([join()], [], {}),
        # A gain below a second is not worth a change.
        ([join()], [work(7, 0.5, read_rows=5_000_000)], {}),
        # The extension had its reasons to leave it to Spark.
        ([join()], PLAIN, {"settings": {"skewext_loaded": True}}),
        ([{**LOOP, "condition": None}], LOOPED, {}),
        # Few pairs, and one side with very few rows.
        ([{**LOOP, "inputs": [given(1000, None), given(1000, None)]}], LOOPED, {}),
        ([{**LOOP, "inputs": [given(1_000_000, None), given(20, None)]}], LOOPED, {}),
    ],
)
def test_joins_that_gain_nothing(
    joins: list[Any], works: list[Any], arguments: dict[str, Any]
) -> None:
    found = report(joins, works, **arguments)
    assert found.gains == []
    assert "Joins that would gain most" not in str(found) + found._repr_html_()
    assert "--jars" not in str(found)


def test_even_tasks_of_joins_that_would_gain() -> None:
    found = report([join()], [*WRITERS, {**READER, "disk_spilled": 30 * MB}])
    (gain,) = found.gains
    text = str(found)
    said = " ".join(text.split())
    assert (
        f"Joins that would gain most * SortMergeJoin on k (stage 7): about "
        f"{gain.saved_seconds:.1f} s of its {gain.task_seconds:.1f} s of task time. Spark shuffles "
        f"and sorts 4,000,000 and 1,000,000 rows (200 MiB), and spills 30 MiB; BuildProbeJoin "
        f"shuffles columns and sorts nothing (docs/joins.md)."
    ) in said
    # The line to copy is one line.
    assert f"\n  {found.command}\n" in text
    html = found._repr_html_()
    assert "<h5>Joins that would gain most</h5><ul><li>SortMergeJoin on k" in html
    assert ">--jars " in html
    assert json.loads(found.to_json())["gains"][0]["join"]["stage"] == 7


def test_the_three_largest_gains() -> None:
    works = [work(n, n, read_rows=5_000_000) for n in range(10, 15)]
    found = report([join(n, inputs=[given(5_000_000, None)] * 2) for n in range(10, 15)], works)
    assert [each.join.stage for each in found.gains] == [14, 13, 12, 11, 10]
    said = " ".join(str(found).split("Stages with joins")[0].split())
    assert [f"(stage {n})" in said for n in range(10, 15)] == [False, False, True, True, True]
    assert said.index("(stage 14)") < said.index("(stage 13)")


def test_nested_loops() -> None:
    (gain,) = report([LOOP], LOOPED).gains
    assert 190 < gain.saved_seconds < gain.task_seconds < 200
    text = " ".join(str(report([LOOP], LOOPED)).split())
    assert "Spark tests 10,000,000,000 pairs of rows; a range join tests only pairs" in text
    other = " ".join(str(report([{**LOOP, "condition": "or"}], LOOPED)).split())
    assert "the parts of its OR become joins on equal keys (docs/or-joins.md)" in other
    few = [given(1_000_000, None), given(66, None)]
    assert saved([{**LOOP, "inputs": few}], LOOPED) < 0.6 * gain.saved_seconds


def test_a_skewed_join_ends_earlier() -> None:
    skewed: dict[str, Any] = {"slowest": None, "uneven": 1}
    (gain,) = report([join()], PLAIN, **skewed).gains
    assert gain.earlier_seconds == 38
    text = " ".join(str(report([join()], PLAIN, **skewed)).split())
    assert "divided among several tasks, so the stage ends about 38.0 s earlier" in text
    for changes in (
        {"below": True},
        {"join": {"split": "by Spark"}},
        EVEN,
    ):
        (whole,) = report([join()], PLAIN, **{**skewed, **changes}).gains
        assert whole.earlier_seconds == 0, changes


def test_the_line_to_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv("SKEWEXT_JAR", raising=False)
    monkeypatch.setattr(_jar, "JAR_DIRECTORY", tmp_path)
    own = "spark.sql.extensions=io.github.skewext.SkewExtensions"
    found = report([join()], PLAIN)
    assert found.command == f"--jars <jar of skewext for Spark 3.5.9> --conf {own}"
    jar = tmp_path / f"skewext-spark3.5_2.12-{_jar.__version__}.jar"
    jar.touch()
    assert found.command == f"--jars {jar} --conf {own}"
    # Extensions of the application stay.
    delta = report([join()], PLAIN, settings={"extensions": "io.delta.Delta, "})
    assert delta.command.endswith("extensions=io.delta.Delta,io.github.skewext.SkewExtensions")
    off = {"skewext_loaded": True, "switched_off": ["spark.skewext.enabled"]}
    disabled = report([join()], PLAIN, settings=off)
    assert disabled.gains and disabled.command == "--conf spark.skewext.enabled=true"
