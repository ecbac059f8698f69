"""The demo's picture: which channels customers share, and what the join costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from demo.inputs import INPUTS

INK = "#22303c"
FAINT = "#c9d1d8"
STOCK = "#9aa5b1"
OURS = "#d9622b"
EVERYWHERE = "#17808a"
MOST_COMBINATIONS = 16


@dataclass(frozen=True)
class Combination:
    """Customers that exactly these inputs know, by position."""

    sources: tuple[int, ...]
    customers: int


@dataclass(frozen=True)
class Bars:
    """Median seconds of both plans for one variant."""

    title: str
    stock: float
    ours: float


def draw(
    file: Path,
    combinations: Sequence[Combination],
    times: Sequence[Bars],
    settings: str,
) -> None:
    """Write the picture as PNG.

    Parameters
    ----------
    file
        Where to write; missing directories are made.
    combinations
        All combinations of inputs that occur; the rarer ones are drawn as one bar.
    times
        One pair of bars each.
    settings
        One line on how the times were taken.
    """
    figure = Figure(figsize=(13, 6.6), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=[2.5, 1], wspace=0.04)[0]
    top, matrix = left.subplots(2, 1, sharex=True, height_ratios=[1.6, 1])
    shown, rest = _most_frequent(combinations)
    _combination_bars(top, shown, rest)
    _membership(matrix, shown, rest, combinations)
    _time_bars(right.subplots(), times, settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130, bbox_inches="tight", pad_inches=0.2, facecolor="white")


def _most_frequent(
    combinations: Sequence[Combination],
) -> tuple[Sequence[Combination], Sequence[Combination]]:
    ordered = sorted(combinations, key=lambda one: (-one.customers, one.sources))
    return ordered[:MOST_COMBINATIONS], ordered[MOST_COMBINATIONS:]


def _combination_bars(
    axes: Axes, shown: Sequence[Combination], rest: Sequence[Combination]
) -> None:
    heights = [one.customers for one in shown]
    colors = [_color(one) for one in shown]
    if rest:
        heights.append(sum(one.customers for one in rest))
        colors.append(FAINT)
    bars = axes.bar(range(len(heights)), heights, color=colors, width=0.65)
    axes.bar_label(bars, [f"{height:,}" for height in heights], fontsize=8, padding=2, color=INK)
    total = sum(heights)
    axes.set_title(
        f"{total:,} customers, by the inputs that know them",
        loc="left",
        color=INK,
        fontweight="bold",
    )
    axes.legend(
        handles=[Patch(color=EVERYWHERE, label="known to all six")],
        frameon=False,
        loc="upper center",
    )
    _plain(axes, ("top", "right", "left", "bottom"))
    axes.set_yticks([])
    axes.margins(y=0.12)
    axes.tick_params(axis="x", length=0, labelbottom=False)


def _membership(
    axes: Axes,
    shown: Sequence[Combination],
    rest: Sequence[Combination],
    combinations: Sequence[Combination],
) -> None:
    """A dot for each input of the combination above, joined by a line."""
    for row in range(len(INPUTS)):
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color="#f3f5f7", zorder=0)
    for position, one in enumerate(shown):
        for row in range(len(INPUTS)):
            axes.scatter(position, row, s=46, color=FAINT, zorder=1)
        axes.plot(
            [position] * len(one.sources),
            one.sources,
            "-o",
            color=_color(one),
            markersize=7,
            zorder=2,
        )
    if rest:
        axes.text(
            len(shown),
            (len(INPUTS) - 1) / 2,
            f"{len(rest)} other\ncombinations",
            rotation=90,
            ha="center",
            va="center",
            fontsize=8,
            color=INK,
        )
    names = []
    for row, source in enumerate(INPUTS):
        customers = sum(one.customers for one in combinations if row in one.sources)
        names.append(f"{source.label}  {customers:>7,}")
    axes.set_yticks(range(len(INPUTS)), names, color=INK)
    axes.set_ylim(len(INPUTS) - 0.5, -0.5)
    axes.set_xlim(-0.6, len(shown) + (0.6 if rest else -0.4))
    axes.tick_params(length=0, labelbottom=False)
    _plain(axes, ("top", "right", "left", "bottom"))


def _time_bars(axes: Axes, times: Sequence[Bars], settings: str) -> None:
    width = 0.38
    for position, bars in enumerate(times):
        for offset, seconds, color in ((-1, bars.stock, STOCK), (1, bars.ours, OURS)):
            drawn = axes.bar(position + offset * width / 2, seconds, width * 0.94, color=color)
            axes.bar_label(drawn, [f"{seconds:.2f} s"], padding=2, fontsize=9, color=INK)
    axes.set_xticks(
        range(len(times)),
        [f"{bars.title}\n{bars.stock / bars.ours:.1f} times as fast" for bars in times],
        color=INK,
    )
    # A single pair of bars would fill the whole width.
    side = 0.6 if len(times) > 1 else 0.9
    axes.set_xlim(-side, len(times) - 1 + side)
    axes.set_title("Time of the six-way full join", loc="left", color=INK, fontweight="bold")
    axes.legend(
        handles=[
            Patch(color=STOCK, label="stock Spark, five joins"),
            Patch(color=OURS, label="skewext, one join"),
        ],
        frameon=False,
        loc="upper right",
    )
    axes.set_xlabel(settings, fontsize=8, color=INK, labelpad=10)
    axes.margins(y=0.25)
    axes.set_yticks([])
    axes.tick_params(axis="x", length=0)
    _plain(axes, ("top", "right", "left"))


def _color(one: Combination) -> str:
    return EVERYWHERE if len(one.sources) == len(INPUTS) else INK


def _plain(axes: Axes, hidden: Sequence[str]) -> None:
    for side in hidden:
        axes.spines[side].set_visible(False)
