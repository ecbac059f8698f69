"""The report on a query for notebooks: tables, and a picture that needs no library."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pyspark_skewext.report.html import facts_table, listed, table
from pyspark_skewext.report.query.bars import COLOR, MEDIAN_COLOR, stages_drawn, task_bars
from pyspark_skewext.report.query.text import seconds, stage_shown, stage_table, summary, title

if TYPE_CHECKING:
    from pyspark_skewext.report.query.result import JoinStage, QueryReport

_WIDTH, _HEIGHT = 880, 130
_TOP, _BOTTOM = 24, 112


def as_html(report: QueryReport) -> str:
    """Write the report as a piece of a page."""
    header, rows = stage_table(report)
    return (
        f"<div><h4>{escape(title(report))}</h4>{facts_table(summary(report))}{picture(report)}"
        f"{table(header, rows) if rows else ''}{listed(report.advice)}</div>"
    )


def picture(report: QueryReport) -> str:
    """Draw the tasks of each stage, the slowest first, as SVG."""
    stages = stages_drawn(report)
    if not stages:
        return ""
    height = _HEIGHT * len(stages)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" font-family="sans-serif" font-size="11" '
        f'fill="currentColor"><title>{escape(title(report))}</title>'
    ]
    for position, stage in enumerate(stages):
        parts += _stage(stage, position * _HEIGHT)
    return "".join(parts) + "</svg>"


def _stage(stage: JoinStage, above: int) -> list[str]:
    bars = task_bars(stage)
    longest = stage.slowest.seconds or 1.0
    bottom, tall = above + _BOTTOM, _BOTTOM - _TOP
    width = _WIDTH / len(bars)
    parts = [
        f'<text x="0" y="{above + 14}">stage {escape(stage_shown(stage))}, {stage.tasks:,} tasks: '
        f"slowest {seconds(stage.slowest.seconds)}, median {seconds(stage.median.seconds)}</text>"
    ]
    for position, bar in enumerate(bars):
        height = tall * bar.seconds / longest
        parts.append(
            f'<rect x="{position * width:.2f}" y="{bottom - height:.2f}" '
            f'width="{max(0.5, width * 0.9):.2f}" height="{max(0.3, height):.2f}" '
            f'fill="{COLOR}"><title>{escape(bar.label)}</title></rect>'
        )
    median = bottom - tall * stage.median.seconds / longest
    for y, color in ((bottom, "currentColor"), (median, MEDIAN_COLOR)):
        parts.append(f'<line x1="0" y1="{y:.2f}" x2="{_WIDTH}" y2="{y:.2f}" stroke="{color}"/>')
    return parts
