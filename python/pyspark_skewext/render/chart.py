"""Bar charts as SVG, which needs no library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

#: More bars than this cannot be told apart.
MOST_BARS = 200
# Blue and orange are the colors of Spark's tab skewext, whose uneven tasks are orange.
GREY, ORANGE, BLUE = "#9aa5b1", "#d9622b", "#17808a"

# A chart as SVG, with its title above and the names of its parts below.
_WIDTH, _HEIGHT, _TOP, _BOTTOM = 880, 150, 24, 125
# The place of the values on the vertical axis.
_AXIS = 90


@dataclass(frozen=True)
class Chart:
    """A bar chart. Each bar has a label, and a part for each color, whose names may be shown.

    `axis` names the axis of the bars. A line may mark the median.
    """

    title: str
    labels: Sequence[str]
    values: Sequence[tuple[float, ...]]
    shown: Callable[[float], str]
    axis: str
    colors: Sequence[str] = (ORANGE,)
    names: Sequence[str] = ()
    median: float | None = None

    @property
    def most(self) -> float:
        """The length of the longest bar."""
        return max(map(sum, self.values), default=0) or 1


def svg(title: str, charts: Sequence[Chart]) -> str:
    """Draw the charts below each other."""
    if not charts:
        return ""
    height = _HEIGHT * len(charts)
    drawn = "".join(
        f'<g transform="translate(0,{_HEIGHT * position})">'
        f'<text y="14">{escape(chart.title)}</text>{_bars(chart)}</g>'
        for position, chart in enumerate(charts)
    )
    # On a narrow page it scrolls before its text becomes too small to read.
    return (
        f'<div style="overflow-x:auto"><svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" '
        f'height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img" font-family="sans-serif" '
        'font-size="11" style="max-width:100%;min-width:760px;height:auto" '
        f'fill="currentColor"><title>{escape(title)}</title>{drawn}</svg></div>'
    )


def _bars(chart: Chart) -> str:
    scale, width = (_BOTTOM - _TOP) / chart.most, (_WIDTH - _AXIS) / len(chart.values)
    parts = []
    for position, (label, values) in enumerate(zip(chart.labels, chart.values)):
        bottom = float(_BOTTOM)
        for value, color in zip(values, chart.colors):
            bottom -= scale * value
            if value:
                parts.append(
                    f'<rect x="{_AXIS + position * width:.2f}" y="{bottom:.2f}" '
                    f'width="{max(0.5, width * 0.9):.2f}" height="{max(0.3, scale * value):.2f}" '
                    f'fill="{color}"><title>{escape(label)}: {chart.shown(value)}</title></rect>'
                )
    # The color of the text is visible on the page and on the bars.
    lines = [(float(_BOTTOM), "none")]
    lines += [] if chart.median is None else [(_BOTTOM - scale * chart.median, "6 3")]
    parts += [
        f'<line x1="{_AXIS}" y1="{y:.2f}" x2="{_WIDTH}" y2="{y:.2f}" stroke="currentColor" '
        f'stroke-dasharray="{dashes}"/>'
        for y, dashes in lines
    ]
    ticks = [(_AXIS - 6, _TOP + 8, chart.shown(chart.most)), (_AXIS - 6, _BOTTOM, "0")]
    parts += [
        f'<text x="{x}" y="{y}" text-anchor="end">{escape(text)}</text>'
        for x, y, text in [*ticks, (_WIDTH, _BOTTOM + 15, chart.axis)]
    ]
    for position, (name, color) in enumerate(zip(chart.names, chart.colors)):
        x, y = _AXIS + 180 * position, _BOTTOM + 15
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{color}"/>')
        parts.append(f'<text x="{x + 15}" y="{y}">{name}</text>')
    return "".join(parts)
