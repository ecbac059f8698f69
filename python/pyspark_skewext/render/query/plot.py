"""The report on a query drawn by matplotlib, an optional package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_skewext.render.picture import figure_for
from pyspark_skewext.render.query.bars import COLOR, MEDIAN_COLOR, stages_drawn, task_bars
from pyspark_skewext.render.query.text import stage_shown, title
from pyspark_skewext.render.values import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pyspark_skewext.results.query import JoinStage, QueryFigures


def draw(report: QueryFigures, figure: Any = None) -> list[Axes]:
    """Draw into `figure`, or into a new one."""
    stages = stages_drawn(report)
    figure = figure_for(figure, height=0.5 + 2.5 * max(1, len(stages)))
    # A dollar sign would begin a formula.
    figure.suptitle(title(report), x=0.01, ha="left", parse_math=False)
    if not stages:
        return []
    all_axes: list[Axes] = list(figure.subplots(len(stages), 1, squeeze=False)[:, 0])
    for stage, axes in zip(stages, all_axes):
        _stage(stage, axes)
    return all_axes


def _stage(stage: JoinStage, axes: Axes) -> None:
    bars = task_bars(stage)
    places = [position * len(stage.task_seconds) / len(bars) for position in range(len(bars))]
    width = 0.9 * len(stage.task_seconds) / len(bars)
    axes.bar(places, [bar.seconds for bar in bars], width=width, color=COLOR)
    axes.axhline(
        stage.median.seconds, color=MEDIAN_COLOR, label=f"median {seconds(stage.median.seconds)}"
    )
    axes.set_title(f"stage {stage_shown(stage)}", loc="left", fontsize=9, parse_math=False)
    axes.set_xlabel("tasks, the slowest first")
    axes.set_ylabel("seconds")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
