"""The page of a report on a key."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_high
from typing import TYPE_CHECKING

from pyspark_skewext.render.chart import BLUE, GREY, MOST_BARS, ORANGE, Chart
from pyspark_skewext.render.page import Page
from pyspark_skewext.render.values import bounds, bytes_shown, numbers, percent, shown, times

if TYPE_CHECKING:
    from pyspark_skewext.results.skew import KeySkew, SkewFigures, Slowest

_KEYS_SHOWN = 10


def page_of(report: SkewFigures, advice: Sequence[str]) -> Page:
    """Put the page together."""
    facts = _facts(report.df, "rows")
    if report.other is not None:
        facts += _facts(report.other, "rows of other")
    if report.output is not None:
        facts.append(("rows of the join", f"about {report.output.rows:,}"))
    facts.append(("slowest task", _slowest(report.slowest)))
    keys = report.hot_keys[:_KEYS_SHOWN]
    header = ["key", "rows", "share", "partition"]
    if report.other is not None:
        header += ["rows of other", "rows of the join"]
    rows = []
    for key in keys:
        row = [shown(key.key), bounds(key.rows), percent(key.share), f"{key.partition:,}"]
        if key.other_rows is not None and key.output_rows is not None:
            row += [bounds(key.other_rows), bounds(key.output_rows)]
        rows.append(row)
    title = f"Skew of {', '.join(report.on)}, {report.shuffle_partitions:,} partitions"
    chart = partitions_of(report)
    return Page(title, facts, "Keys with the most rows", header, rows, advice, [chart])


def _facts(skew: KeySkew, name: str) -> list[tuple[str, str]]:
    facts = [(name, f"{skew.rows:,}, about {bytes_shown(skew.rows * skew.row_bytes)} in memory")]
    if skew.null_rows:
        facts.append(("  with a null key", f"{skew.null_rows:,} ({percent(skew.null_share)})"))
    low, high = skew.distinct_bounds
    if low == high:
        facts.append(("  different keys", f"{skew.distinct:,}"))
    else:
        facts.append(("  different keys", f"about {skew.distinct:,} ({low:,} to {high:,})"))
    rows = skew.partition_rows
    facts.append(("  rows a partition", f"median {median_high(rows):,}, largest {max(rows):,}"))
    split = skew.skewed_partitions
    if split:
        facts.append(("  split when adaptive", f"partition {numbers(split)}"))
    return facts


def _slowest(slowest: Slowest) -> str:
    if not slowest.size:
        return "none has anything to do"
    if slowest.times is None:
        return f"partition {slowest.partition}; most others have nothing to do"
    return f"partition {slowest.partition}, {times(slowest.times)} the median"


def partitions_of(report: SkewFigures) -> Chart:
    """A bar for each partition of `df`; of very many partitions the largest of each few."""
    rows = report.df.partition_rows
    hot = [0.0] * len(rows)
    for key in report.hot_keys:
        hot[key.partition] += key.rows.middle
    step = -(-len(rows) // MOST_BARS)
    labels, values = [], []
    for start in range(0, len(rows), step):
        group = range(start, min(start + step, len(rows)))
        largest = max(group, key=rows.__getitem__)
        nulls = report.df.partition_null_rows[largest]
        hot_rows = min(round(hot[largest]), rows[largest] - nulls)
        several = f", the largest of {group[0]:,} to {group[-1]:,}" if len(group) > 1 else ""
        labels.append(f"partition {largest:,}{several}")
        values.append((rows[largest] - nulls - hot_rows, hot_rows, nulls))
    return Chart(
        f"rows by partition, 0 to {len(rows) - 1:,} (tallest: {max(rows, default=0):,})",
        labels,
        values,
        lambda value: f"{value:,.0f} rows",
        "partition",
        colors=(GREY, ORANGE, BLUE),
        names=("other keys", "keys with the most rows", "NULL in the key"),
    )
