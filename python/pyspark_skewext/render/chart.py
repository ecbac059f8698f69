"""Bar charts: as SVG for notebooks, which needs no library, and by matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More bars than this cannot be told apart.
MOST_BARS = 200
# Blue and orange are the colors of Spark's tab skewext, whose uneven tasks are orange.
GREY, ORANGE, BLUE = "#9aa5b1", "#d9622b", "#17808a"

# A chart as SVG, with its title above and the names of its parts below.
_WIDTH, _HEIGHT, _TOP, _BOTTOM, _LEFT = 880, 150, 24, 125, 280
# The place of the values on the vertical axis.
_AXIS = 90
# The height of a lying bar, with the space below it.
_STEP = 12


@dataclass(frozen=True)
class Chart:
    """A bar chart. Each bar has a label, and a part for each color, whose names may be shown.

    `axes` names the axis of the bars and that of the values. A line may mark the median. A bar may
    stand for several things, `step` of them.
    """

    title: str
    labels: Sequence[str]
    values: Sequence[tuple[float, ...]]
    shown: Callable[[float], str]
    axes: tuple[str, str]
    colors: Sequence[str] = (ORANGE,)
    names: Sequence[str] = ()
    median: float | None = None
    horizontal: bool = False
    step: int = 1

    @property
    def most(self) -> float:
        """The length of the longest bar."""
        return max(map(sum, self.values), default=0) or 1


def svg(title: str, charts: Sequence[Chart]) -> str:
    """Draw the charts below each other."""
    if not charts:
        return ""
    drawn, height = "", 0
    for chart in charts:
        drawn += (
            f'<g transform="translate(0,{height})"><text y="14">{escape(chart.title)}</text>'
            f"{_lying(chart) if chart.horizontal else _standing(chart)}</g>"
        )
        height += _TOP + _STEP * len(chart.values) + 8 if chart.horizontal else _HEIGHT
    # On a narrow page it scrolls before its text becomes too small to read.
    return (
        f'<div style="overflow-x:auto"><svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" '
        f'height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img" font-family="sans-serif" '
        'font-size="11" style="max-width:100%;min-width:760px;height:auto" '
        f'fill="currentColor"><title>{escape(title)}</title>{drawn}</svg></div>'
    )


def _standing(chart: Chart) -> str:
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
        for x, y, text in [*ticks, (_WIDTH, _BOTTOM + 15, chart.axes[0])]
    ]
    for position, (name, color) in enumerate(zip(chart.names, chart.colors)):
        x, y = _AXIS + 180 * position, _BOTTOM + 15
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{color}"/>')
        parts.append(f'<text x="{x + 15}" y="{y}">{name}</text>')
    return "".join(parts)


def _lying(chart: Chart) -> str:
    parts = []
    for position, (label, (value, *_)) in enumerate(zip(chart.labels, chart.values)):
        y, width = _TOP + position * _STEP, (_WIDTH - _LEFT - 80) * value / chart.most
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 0.8 * _STEP:.1f}" text-anchor="end">{escape(label)}'
            f'</text><rect x="{_LEFT}" y="{y + 1}" width="{max(0.5, width):.2f}" '
            f'height="{_STEP - 2}" fill="{chart.colors[0]}"/>'
            f'<text x="{_LEFT + width + 5:.1f}" y="{y + 0.8 * _STEP:.1f}">{chart.shown(value)}'
            "</text>"
        )
    return "".join(parts)


def plot(title: str, charts: Sequence[Chart], figure: Any = None) -> list[Axes]:
    """Draw the charts by matplotlib into `figure`, or into a new one."""
    try:
        if figure is None:
            from matplotlib import pyplot

            size = (11, 0.5 + 2.5 * max(1, len(charts)))
            figure = pyplot.figure(figsize=size, layout="constrained")
    except ImportError as error:
        raise ImportError(
            "plot() needs matplotlib: pip install 'pyspark-skewext[plot]'. In notebooks the report "
            "has a picture without it."
        ) from error
    # A dollar sign would begin a formula.
    figure.suptitle(title, x=0.01, ha="left", parse_math=False)
    if not charts:
        return []
    all_axes: list[Axes] = list(figure.subplots(len(charts), 1, squeeze=False)[:, 0])
    for chart, axes in zip(charts, all_axes):
        _draw(chart, axes)
    return all_axes


def _draw(chart: Chart, axes: Axes) -> None:
    places = [position * chart.step for position in range(len(chart.values))]
    start = [0.0] * len(chart.values)
    for part, color in enumerate(chart.colors):
        sizes = [values[part] for values in chart.values]
        name = chart.names[part] if chart.names else None
        if chart.horizontal:
            drawn = axes.barh(places, sizes, left=start, color=color, label=name)
            axes.bar_label(drawn, list(map(chart.shown, sizes)), padding=3, fontsize=8)
        else:
            axes.bar(places, sizes, 0.9 * chart.step, bottom=start, color=color, label=name)
        start = [one + two for one, two in zip(start, sizes)]
    bars, values = chart.axes
    if chart.horizontal:
        axes.set_yticks(places, chart.labels, parse_math=False)
        axes.invert_yaxis()
        axes.margins(x=0.2)
        bars, values = values, bars
    axes.set_xlabel(bars)
    axes.set_ylabel(values)
    if chart.median is not None:
        axes.axhline(
            chart.median, color="0.2", linestyle="--", label=f"median {chart.shown(chart.median)}"
        )
    if chart.names or chart.median is not None:
        axes.legend(frameon=False)
    axes.set_title(chart.title, loc="left", fontsize=9, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
