"""The picture of the report on a query for notebooks, which needs no library."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pyspark_skewext.render.query.bars import COLOR, MEDIAN_COLOR, stages_drawn, task_bars
from pyspark_skewext.render.query.text import stage_shown, title
from pyspark_skewext.render.values import seconds

if TYPE_CHECKING:
    from pyspark_skewext.results.query import JoinStage, QueryFigures

_WIDTH, _HEIGHT = 880, 130
_TOP, _BOTTOM = 24, 112


def picture(report: QueryFigures) -> str:
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
