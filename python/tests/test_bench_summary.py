"""Figures in the project's pages are those of the result files."""

from __future__ import annotations

import json
import re

import pytest
import summary
from harness import merge_page, plan_page, reliability_page

NOT_ALWAYS_MEASURED = ("skew-figures.md", "skew-join.md")


def test_pages_say_what_the_results_say() -> None:
    for page, block in summary.pages(summary.in_order(summary.RESULTS)).items():
        text = page.read_text(encoding="utf-8")
        assert summary.with_block(text, block) == text, f"run bench/summary.py for {page.name}"
        # There is something to say, but of what was not measured yet.
        assert block.count("\n") >= 4 or (page.name in NOT_ALWAYS_MEASURED and not block)
    for other in plan_page, merge_page:
        for page, block in other.pages().items():
            text = page.read_text(encoding="utf-8")
            assert summary.with_block(text, block, other.TOOL) == text, f"and for {page.name}"
            assert block.count("\n") >= 4
    text = reliability_page.PAGE.read_text(encoding="utf-8")
    for tool, block in reliability_page.blocks().items():
        assert summary.with_block(text, block, tool) == text, f"run bench/summary.py for {tool}"


def test_no_answer_was_wrong_while_a_cluster_broke() -> None:
    found = json.loads((summary.RESULTS / "reliability-faults.json").read_text(encoding="utf-8"))
    assert [run for run in found["runs"] if run["on"] == "wrong"] == []


def test_every_merge_did_what_it_does_without_us() -> None:
    found = json.loads(merge_page.RESULTS.read_text(encoding="utf-8"))["cases"]
    assert {name: case["problems"] for name, case in found.items() if case["problems"]} == {}


def test_the_block_is_replaced_and_nothing_else() -> None:
    begin, end = (c.format(tool="summary.py") for c in (summary.BEGIN, summary.END))
    other = f"{summary.BEGIN}\nkept\n{summary.END}".format(tool="simulate.py")
    page = f"before\n{begin}\nold\n{end}\nafter {end[:4]}\n{other}\n"
    assert summary.with_block(page, "new") == page.replace("old", "new")
    assert summary.with_block(page, "new", "simulate.py") == page.replace("kept", "new")
    with pytest.raises(ValueError):
        summary.with_block("a page without a block", "new")


def test_every_result_was_right() -> None:
    found = summary.in_order(summary.RESULTS)
    assert found
    for result in found:
        assert result["problems"] == [], result["case"]
        for point in result["points"]:
            sums = {
                (facts["rows"], facts["checksum"])
                for facts in point["variants"].values()
                if facts.get("checksum") is not None
            }
            assert len(sums) <= 1, result["case"]


def test_headlines_are_cases() -> None:
    names = {result["case"] for result in summary.in_order(summary.RESULTS)}
    assert set(summary.HEADLINES) <= names
    assert all(re.fullmatch("[a-z0-9-]+", name) for name in names)
