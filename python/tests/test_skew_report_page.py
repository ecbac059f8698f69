"""What the report about a key's skew says and shows, of figures as the JVM gives them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from typing import Any

import pytest
from pictures import svg_of

import pyspark_skewext as skewext
from pyspark_skewext.render.chart import MOST_BARS
from pyspark_skewext.render.skew import partitions_of
from pyspark_skewext.report import SkewReport
from pyspark_skewext.results.skew import Slowest


def made(
    partition_rows: list[int],
    hot: list[tuple[Any, ...]],
    nulls: list[int] | None = None,
    other: list[int] | None = None,
    output: list[int] | None = None,
    row_bytes: int = 100,
    other_key: str = "k",
    **changes: Any,
) -> SkewReport:
    def table(rows: list[int], null_rows: list[int]) -> dict[str, Any]:
        total = sum(rows) + sum(null_rows)
        return {
            "rows": total,
            "untracked_rows": 0,
            "max_error": 0,
            "distinct_low": 900,
            "distinct": 1000,
            "distinct_high": 1100,
            "row_bytes": row_bytes,
            "partition_rows": rows,
            "partition_null_rows": null_rows,
            "partition_bytes": [row_bytes * sum(both) for both in zip(rows, null_rows)],
            "split_above_bytes": 256 * 1024**2,
            "slice_bytes": 64 * 1024**2,
        }

    none = [0] * len(partition_rows)
    figures = {
        "shuffle_partitions": len(partition_rows),
        "spark_splits": True,
        "skewext_splits": True,
        "skewed_factor": 5.0,
        "broadcast_bytes": 10 * 1024**2,
        "output_cost": 0.05,
        "inputs": [table(partition_rows, nulls or none)],
        "output": None,
    }
    if other is not None:
        figures["inputs"].append(table(other, none))
        figures["output"] = {
            "rows": sum(output or none),
            "hot_low": 0,
            "hot_high": 0,
            "partition_rows": output or none,
            "row_bytes": 2 * row_bytes,
            "split_above_bytes": 256 * 1024**2,
        }
    figures.update(changes)
    rows = [([key], partition, counts[::2], counts[1::2]) for key, partition, *counts in hot]
    return SkewReport.of(["k"], [["k"], [other_key]], figures, rows)


def advice(*args: Any, **kwargs: Any) -> str:
    return "\n".join(made(*args, **kwargs).advice)


EVEN = [10_000] * 8
ONE_HOT = [10_000] * 7 + [9_000_000]
HOT_KEY = [("a", 7, 8_990_000, 8_990_000)]


@pytest.mark.parametrize(
    ("said", "not_said", "arguments"),
    [
        ("nothing to do (the slowest task has 1.0 times", "skewext", {"partition_rows": EVEN}),
        ("makes about 13 tasks of it", "set(", {}),
        ("skewext.configure(builder)", "makes about", {"skewext_splits": False}),
        (
            '"spark.sql.adaptive.enabled", True',
            "configure",
            {"skewext_splits": False, "spark_splits": False},
        ),
        ('skewedPartitionThresholdInBytes", "85MB"', "Factor", {"row_bytes": 20}),
        ('skewedPartitionThresholdInBytes", "85MB"', "advisory", {"row_bytes": 20}),
        # One slice of the advisory size would have all rows.
        (
            'skewedPartitionThresholdInBytes", "17MB"), spark.conf.set("spark.sql.adaptive.'
            'advisoryPartitionSizeInBytes", "17MB"). Adaptive execution makes about 2 tasks',
            "Factor",
            {"row_bytes": 4},
        ),
        (
            "All partitions are small (at most about 8.6 MiB in memory): there is nothing to do",
            "set(",
            {"row_bytes": 1},
        ),
        # Three rows are no skew, with one key or with several, and need no other key.
        ("are small", "partition 0", {"partition_rows": [3, 0, 0], "hot": [("a", 0, 3, 3)]}),
        ("are small", "more partitions", {"partition_rows": [3, 1, 1], "hot": []}),
        ("are small", "NULL", {"partition_rows": [1, 1, 1], "hot": [], "nulls": [0, 3, 0]}),
        ("but of several keys", "configure", {"hot": []}),
        # It has many rows, but in another partition.
        ("but of several keys", "alone", {"hot": [("a", 3, 8_990_000, 8_990_000)]}),
        ("shuffle.partitions", "alone", {"hot": []}),
        (
            "2,000,000 of them to partition 2",
            "alone",
            {"partition_rows": EVEN, "nulls": [0, 0, 2_000_000, 0, 0, 0, 0, 0]},
        ),
        (
            "skewext.multi_full_join(df, other, on='k')",
            "alone",
            {"partition_rows": EVEN, "nulls": [0, 0, 2_000_000, 0, 0, 0, 0, 0]},
        ),
        (
            "df.join(F.broadcast(other), 'k', ...)",
            "dropDuplicates",
            {"other": [10] * 8, "hot": [(*HOT_KEY[0], 0, 0)]},
        ),
        (
            "df.join(F.broadcast(other), df[...] == other[...], ...)",
            "dropDuplicates",
            {"other": [10] * 8, "hot": [(*HOT_KEY[0], 0, 0)], "other_key": "id"},
        ),
        (
            "other.dropDuplicates(['id'])",
            "['k']",
            {
                "other": [200_000] * 8,
                "output": [9_000] * 7 + [17_980_000_000],
                "hot": [(*HOT_KEY[0], 2_000, 2_000)],
                "other_key": "id",
            },
        ),
        (
            "skewext.multi_full_join(df, (other, 'id'), on='k')",
            "broadcast",
            {"other": [200_000] * 8, "hot": [(*HOT_KEY[0], 0, 0)], "other_key": "id"},
        ),
        (
            "the key 'a' has 8,990,000 rows in df and 2,000 in other, which makes 17,980,000,000",
            "broadcast",
            {
                "other": [200_000] * 8,
                "output": [9_000] * 7 + [17_980_000_000],
                "hot": [(*HOT_KEY[0], 2_000, 2_000)],
            },
        ),
        # A join of many rows with one row each is an ordinary one.
        (
            "alone has",
            "dropDuplicates",
            {
                "other": [200_000] * 8,
                "output": [10_000] * 7 + [9_000_000],
                "hot": [(*HOT_KEY[0], 1, 1)],
            },
        ),
        # So is one that gives no more rows than it reads.
        (
            "alone has",
            "dropDuplicates",
            {
                "other": [2_000_000] * 8,
                "output": [10_000] * 7 + [17_980_000],
                "hot": [(*HOT_KEY[0], 2, 2)],
            },
        ),
        (
            "divides what comes out of partition 7",
            "There are no rows",
            {
                "other": [200_000] * 8,
                "output": [9_000] * 7 + [17_980_000_000],
                "hot": [(*HOT_KEY[0], 2_000, 2_000)],
            },
        ),
    ],
)
def test_advice(said: str, not_said: str, arguments: dict[str, Any]) -> None:
    text = advice(**{"partition_rows": ONE_HOT, "hot": HOT_KEY, **arguments})
    assert said in text
    assert not_said not in text
    # Only what there is can be recommended.
    assert set(re.findall(r"skewext\.([a-z_]+)\(", text)) <= set(skewext.__all__)


def test_the_verdict_and_the_figure_are_one_judgement() -> None:
    """A report does not call tasks even whose slowest has much more than the median."""
    for sizes, said in (
        ([10_000_000] * 8, "spread evenly enough"),
        ([10_000_000] * 7 + [300_000_000], "The rows of df have different sizes: partition 7 has"),
        ([1_000] * 7 + [3_000_000], "All partitions are small"),
    ):
        figures = made(EVEN, []).df
        inputs = replace(figures, partition_bytes=tuple(sizes))
        report = replace(made(EVEN, []), df=inputs, slowest=Slowest.of(sizes))
        assert said in report.advice[0]
        assert ("evenly" in report.advice[0]) == ((report.slowest.times or 0) <= 2)
    # What a join returns counts in the figure, and so in the verdict.
    output = [9_000] * 7 + [30_000]
    joined = made([200_000] * 8, [], other=[200_000] * 8, output=[10**6 * n for n in output])
    assert (joined.slowest.times or 0) > 2 and "evenly" not in joined.advice[0]


def test_hot_keys_of_a_join() -> None:
    """The first one has the largest share of anything: of rows, or of what comes out."""
    hot = [("b", 1, 10, 20, 3, 5_000), ("a", 0, 9_000, 9_000, 1, 1)]
    for output, order in ((125_000, ["a", "b"]), (20_000, ["b", "a"])):
        keys = made(EVEN, hot, other=EVEN, output=[output] * 8).hot_keys
        assert [key.key for key in keys] == order
        bounds = {key.key: key.output_rows for key in keys}
        assert bounds == {"a": (9_000, 9_000), "b": (30, 100_000)}


def test_few_keys() -> None:
    report = made([500_000] + [0] * 1999, [(1, 0, 5, 5)])
    assert report.slowest.times is None
    assert "most others have nothing to do" in str(report)
    assert "1,100 different keys for 2,000 partitions, so at least 900" in report.advice[-1]


def test_as_a_table() -> None:
    others = [("b" * 60, 1, 5, 9_000), (time(12), 2, 5, 5)]
    lines = str(made(ONE_HOT, [*HOT_KEY, *others])).splitlines()
    assert lines[0] == "Skew of k, 8 partitions"
    assert "slowest task partition 7, 900 times the median" in [" ".join(x.split()) for x in lines]
    table = lines[lines.index("Keys with the most rows") + 2 :]
    assert table[0].split() == ["key", "rows", "share", "partition"]
    assert table[2].split() == ["'a'", "8,990,000", "99.1%", "7"]
    assert table[3].split() == ["'" + "b" * 36 + "...", "5", "to", "9,000", "<", "0.1%", "1"]
    assert table[4].split()[:2] == ["12:00:00", "5"]
    assert max(map(len, lines)) <= 96
    assert repr(made(EVEN, [])) == str(made(EVEN, []))


def test_html_is_escaped_and_the_picture_is_svg() -> None:
    evil = "<script>alert('&')</script>"
    report = made(ONE_HOT, [(evil, 7, 8_990_000, 8_990_000)], nulls=[0] * 7 + [5])
    page = report._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    picture = svg_of(report._repr_html_())
    titles = [each.text for each in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert "partition 7: 8,990,000 rows" in titles
    assert "partition 7: 5 rows" in titles


def test_very_many_partitions_share_bars() -> None:
    rows = [1] * 1000
    rows[77] = 500
    chart = partitions_of(made(rows, [("a", 77, 400, 400)]))
    assert len(chart.values) == len(chart.labels) == MOST_BARS
    assert chart.labels[15] == "partition 77, the largest of 75 to 79"
    assert chart.values[15] == (100, 400, 0)


def test_to_dict_is_json() -> None:
    keys = [Decimal("1.50"), date(2024, 1, 2), b"\x01", float("nan"), [1, None], "s"]
    report = made(EVEN, [(key, 0, 1, 1) for key in keys])
    result = json.loads(report.to_json())
    assert result["advice"] == report.advice
    written = [key["key"] for key in result["hot_keys"]]
    assert written == ["1.50", "2024-01-02", "01", "nan", [1, None], "s"]
    assert result["hot_keys"][0]["rows"] == {"low": 1, "high": 1}
    assert result["slowest"]["times"] == 1.0
    assert result["df"]["skewed_partitions"] == []
