"""The report drawn by matplotlib, an optional package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_skewext.report.bars import COLORS, bars_of, key_bars_of
from pyspark_skewext.report.text import KEYS_SHOWN, title
from pyspark_skewext.report.values import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pyspark_skewext.report.result import SkewReport


def draw(report: SkewReport, figure: Any = None) -> list[Axes]:
    """Draw into `figure`, or into a new one."""
    figure = figure_for(figure, height=4)
    partitions, keys = figure.subplots(1, 2, width_ratios=[2, 1])
    _partitions(report, partitions)
    _keys(report, keys)
    # A dollar sign would begin a formula.
    figure.suptitle(title(report), x=0.01, ha="left", parse_math=False)
    return [partitions, keys]


def figure_for(given: Any, *, height: float) -> Any:
    """Give what was given, or a new figure; say what is missing if matplotlib is."""
    try:
        import matplotlib  # noqa: F401

        if given is not None:
            return given
        from matplotlib import pyplot

        return pyplot.figure(figsize=(11, height), layout="constrained")
    except ImportError as error:
        raise ImportError(
            "plot() needs matplotlib: pip install 'pyspark-skewext[plot]'. In notebooks the report "
            "has a picture without it."
        ) from error


def _partitions(report: SkewReport, axes: Axes) -> None:
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


def _keys(report: SkewReport, axes: Axes) -> None:
    bars = key_bars_of(report, KEYS_SHOWN)
    drawn = axes.barh(range(len(bars)), [rows for _, rows in bars], color=COLORS[1][1])
    axes.bar_label(drawn, [f"{rows:,.0f}" for _, rows in bars], padding=3, fontsize=8)
    axes.set_yticks(range(len(bars)), [shown(key) for key, _ in bars], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel("rows of the key")
    axes.margins(x=0.2)
    axes.spines[["top", "right"]].set_visible(False)
