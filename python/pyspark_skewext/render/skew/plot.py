"""The report drawn by matplotlib, an optional package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_skewext.render.picture import figure_for
from pyspark_skewext.render.skew.bars import COLORS, bars_of, key_bars_of
from pyspark_skewext.render.skew.text import KEYS_SHOWN, title
from pyspark_skewext.render.values import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pyspark_skewext.results.skew import SkewFigures


def draw(report: SkewFigures, figure: Any = None) -> list[Axes]:
    """Draw into `figure`, or into a new one."""
    figure = figure_for(figure, height=4)
    partitions, keys = figure.subplots(1, 2, width_ratios=[2, 1])
    _partitions(report, partitions)
    _keys(report, keys)
    # A dollar sign would begin a formula.
    figure.suptitle(title(report), x=0.01, ha="left", parse_math=False)
    return [partitions, keys]


def _partitions(report: SkewFigures, axes: Axes) -> None:
    bars = bars_of(report)
    places = [bar.partition for bar in bars]
    width = 0.9 * report.shuffle_partitions / len(bars)
    bottom = [0] * len(bars)
    for part, (name, color) in enumerate(COLORS):
        heights = [bar.parts[part] for bar in bars]
        axes.bar(places, heights, width=width, bottom=bottom, color=color, label=name)
        bottom = [one + two for one, two in zip(bottom, heights)]
    axes.set_xlabel("partition")
    axes.set_ylabel("rows")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def _keys(report: SkewFigures, axes: Axes) -> None:
    bars = key_bars_of(report, KEYS_SHOWN)
    drawn = axes.barh(range(len(bars)), [rows for _, rows in bars], color=COLORS[1][1])
    axes.bar_label(drawn, [f"{rows:,.0f}" for _, rows in bars], padding=3, fontsize=8)
    axes.set_yticks(range(len(bars)), [shown(key) for key, _ in bars], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel("rows of the key")
    axes.margins(x=0.2)
    axes.spines[["top", "right"]].set_visible(False)
