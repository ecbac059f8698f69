"""The picture of the report for notebooks, which needs no library."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pyspark_skewext.render.skew.bars import COLORS, bars_of, key_bars_of
from pyspark_skewext.render.skew.text import KEYS_SHOWN, title
from pyspark_skewext.render.values import shown

if TYPE_CHECKING:
    from pyspark_skewext.results.skew import SkewFigures

_WIDTH, _HEIGHT = 880, 250
_TOP, _BOTTOM = 24, 215
_LEFT_END, _RIGHT_START, _RIGHT_END = 520, 700, 790


def picture(report: SkewFigures) -> str:
    """Draw rows by partition, and the keys with the most rows, as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-family="sans-serif" font-size="11" '
        f'fill="currentColor"><title>{escape(title(report))}</title>'
    ]
    parts += _partitions(report)
    parts += _keys(report)
    return "".join(parts) + "</svg>"


def _partitions(report: SkewFigures) -> list[str]:
    bars = bars_of(report)
    tallest = max((sum(bar.parts) for bar in bars), default=0) or 1
    width = _LEFT_END / len(bars)
    parts = [f'<text x="0" y="14">rows by partition (tallest: {tallest:,})</text>']
    for position, bar in enumerate(bars):
        bottom = float(_BOTTOM)
        for rows, (_, color) in zip(bar.parts, COLORS):
            height = (_BOTTOM - _TOP) * rows / tallest
            bottom -= height
            if rows:
                parts.append(
                    f'<rect x="{position * width:.2f}" y="{bottom:.2f}" '
                    f'width="{max(0.5, width * 0.9):.2f}" height="{max(0.3, height):.2f}" '
                    f'fill="{color}"><title>{escape(bar.label)}: {rows:,} rows</title></rect>'
                )
    parts.append(
        f'<line x1="0" y1="{_BOTTOM}" x2="{_LEFT_END}" y2="{_BOTTOM}" stroke="currentColor"/>'
        f'<text x="0" y="{_BOTTOM + 13}">0</text>'
        f'<text x="{_LEFT_END}" y="{_BOTTOM + 13}" text-anchor="end">'
        f"{report.shuffle_partitions - 1:,}</text>"
    )
    start = 0
    for name, color in COLORS:
        parts.append(
            f'<rect x="{start}" y="{_HEIGHT - 12}" width="9" height="9" fill="{color}"/>'
            f'<text x="{start + 13}" y="{_HEIGHT - 3}">{name}</text>'
        )
        start += 150
    return parts


def _keys(report: SkewFigures) -> list[str]:
    bars = key_bars_of(report, KEYS_SHOWN)
    if not bars:
        return []
    most = max(rows for _, rows in bars) or 1
    step = (_BOTTOM - _TOP) / KEYS_SHOWN
    parts = [f'<text x="{_RIGHT_START}" y="14">rows by key</text>']
    for position, (key, rows) in enumerate(bars):
        top = _TOP + position * step
        width = (_RIGHT_END - _RIGHT_START) * rows / most
        parts.append(
            f'<text x="{_RIGHT_START - 6}" y="{top + step * 0.65:.1f}" text-anchor="end">'
            f"{escape(shown(key)[:24])}</text>"
            f'<rect x="{_RIGHT_START}" y="{top + 1:.1f}" width="{max(0.5, width):.2f}" '
            f'height="{step - 3:.1f}" fill="{COLORS[1][1]}"/>'
            f'<text x="{_RIGHT_START + width + 5:.1f}" y="{top + step * 0.65:.1f}">'
            f"{rows:,.0f}</text>"
        )
    return parts
