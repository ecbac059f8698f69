"""What pictures of a report show, whatever draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_skewext.render.picture import MOST_BARS

if TYPE_CHECKING:
    from pyspark_skewext.results.skew import SkewFigures

#: What a bar is made of, from below, and in which colors.
COLORS = (
    ("other keys", "#9aa5b1"),
    ("keys with the most rows", "#d9622b"),
    ("NULL in the key", "#17808a"),
)


class Bar(NamedTuple):
    """Rows of a partition, or of the largest of several neighbours."""

    partition: int
    label: str
    parts: tuple[int, int, int]


def bars_of(report: SkewFigures) -> list[Bar]:
    """Make a bar for each partition of `df`; of very many partitions the largest of each few."""
    rows = report.df.partition_rows
    hot = [0.0] * len(rows)
    for key in report.hot_keys:
        hot[key.partition] += key.rows.middle
    every = -(-len(rows) // MOST_BARS)
    bars = []
    for start in range(0, len(rows), every):
        group = range(start, min(start + every, len(rows)))
        largest = max(group, key=rows.__getitem__)
        nulls = report.df.partition_null_rows[largest]
        hot_rows = min(round(hot[largest]), rows[largest] - nulls)
        label = f"partition {largest:,}"
        if len(group) > 1:
            label += f", the largest of {group[0]:,} to {group[-1]:,}"
        bars.append(Bar(largest, label, (rows[largest] - nulls - hot_rows, hot_rows, nulls)))
    return bars


def key_bars_of(report: SkewFigures, most: int) -> list[tuple[Any, float]]:
    """List the keys of the table with their rows in `df`."""
    return [(key.key, key.rows.middle) for key in report.hot_keys[:most]]
