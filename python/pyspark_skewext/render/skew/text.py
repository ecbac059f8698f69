"""What the report says, as text and in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_skewext.render.values import bounds, bytes_shown, numbers, percent, shown, times

if TYPE_CHECKING:
    from pyspark_skewext.results.skew import KeySkew, SkewFigures, Slowest

KEYS_SHOWN = 10


def title(report: SkewFigures) -> str:
    """Say what the report is about."""
    return f"Skew of {', '.join(report.on)}, {report.shuffle_partitions:,} partitions"


def summary(report: SkewFigures) -> list[tuple[str, str]]:
    """What is known besides single keys, as names and sentences."""
    facts = _facts(report.df, "rows")
    if report.other is not None:
        facts += _facts(report.other, "rows of other")
    if report.output is not None:
        facts.append(("rows of the join", f"about {report.output.rows:,}"))
    facts.append(("slowest task", _slowest(report.slowest)))
    return facts


def _facts(skew: KeySkew, name: str) -> list[tuple[str, str]]:
    facts = [(name, f"{skew.rows:,}, about {bytes_shown(skew.rows * skew.row_bytes)} in memory")]
    if skew.null_rows:
        facts.append(("  with a null key", f"{skew.null_rows:,} ({percent(skew.null_share)})"))
    low, high = skew.distinct_bounds
    if low == high:
        facts.append(("  different keys", f"{skew.distinct:,}"))
    else:
        facts.append(("  different keys", f"about {skew.distinct:,} ({low:,} to {high:,})"))
    ordered = sorted(skew.partition_rows)
    facts.append(
        ("  rows a partition", f"median {ordered[len(ordered) // 2]:,}, largest {ordered[-1]:,}")
    )
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


def key_table(report: SkewFigures) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Header and rows of the table of keys."""
    header = ["key", "rows", "share", "partition"]
    if report.other is not None:
        header += ["rows of other", "rows of the join"]
    rows = []
    for key in report.hot_keys[:KEYS_SHOWN]:
        row = [shown(key.key), bounds(key.rows), percent(key.share), f"{key.partition:,}"]
        if key.other_rows is not None and key.output_rows is not None:
            row += [bounds(key.other_rows), bounds(key.output_rows)]
        rows.append(row)
    return header, rows
