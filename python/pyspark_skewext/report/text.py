"""The report as lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_skewext.report.values import bytes_shown, shown

if TYPE_CHECKING:
    from pyspark_skewext.report.result import Bounds, KeySkew, SkewReport, Slowest

WIDTH = 96
KEYS_SHOWN = 10


def as_text(report: SkewReport) -> str:
    """Write the report as a table."""
    lines = [title(report), ""]
    facts = summary(report)
    width = max(len(name) for name, _ in facts)
    lines += [f"  {name:<{width}}  {what}" for name, what in facts]
    header, rows = key_table(report)
    if rows:
        lines += ["", "Keys with the most rows", ""]
        lines += [f"  {line}" for line in aligned(header, rows)]
    return "\n".join([*lines, "", "Advice", "", *advice_lines(report.advice)])


def advice_lines(advice: Sequence[str]) -> list[str]:
    """Write sentences as a list, in lines that are not too long."""
    lines = []
    for sentence in advice:
        lines += textwrap.wrap(
            sentence,
            WIDTH,
            initial_indent="  * ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def title(report: SkewReport) -> str:
    """Say what the report is about."""
    return f"Skew of {', '.join(report.on)}, {report.shuffle_partitions:,} partitions"


def summary(report: SkewReport) -> list[tuple[str, str]]:
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


def key_table(report: SkewReport) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
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


def bounds(given: Bounds) -> str:
    """Write bounds as one number, or as two."""
    return f"{given.low:,}" if given.is_exact else f"{given.low:,} to {given.high:,}"


def percent(share: float) -> str:
    """Write a share so that a small one does not look like none."""
    return f"{share:.1%}" if share >= 0.001 or not share else "< 0.1%"


def times(number: float) -> str:
    """Write how many times something is something else."""
    return f"{number:,.0f} times" if number >= 10 else f"{number:.1f} times"


def numbers(values: Sequence[int]) -> str:
    """List numbers, not too many of them."""
    listed = ", ".join(f"{value:,}" for value in values[:8])
    return f"{listed} and {len(values) - 8:,} more" if len(values) > 8 else listed


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a table: the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    lines = [
        "  ".join(
            cell.rjust(width) if position else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in [header, *rows]
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
