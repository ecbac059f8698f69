"""What pictures of tasks show, whatever draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark_skewext.render.picture import MOST_BARS
from pyspark_skewext.render.values import seconds

if TYPE_CHECKING:
    from pyspark_skewext.results.query import JoinStage, QueryFigures

#: More stages than this make no picture.
MOST_STAGES = 4

COLOR, MEDIAN_COLOR = "#d9622b", "#17808a"


class TaskBar(NamedTuple):
    """How long a task ran, or the slowest of several."""

    label: str
    seconds: float


def stages_drawn(report: QueryFigures) -> list[JoinStage]:
    """The stages with the slowest tasks, in the order of their numbers."""
    slowest = sorted(report.stages, key=lambda stage: stage.slowest.seconds, reverse=True)
    return sorted(slowest[:MOST_STAGES], key=lambda stage: stage.stage)


def task_bars(stage: JoinStage) -> list[TaskBar]:
    """Make a bar for each task, the slowest first; of very many one for each few."""
    every = -(-len(stage.task_seconds) // MOST_BARS)
    bars = []
    for start in range(0, len(stage.task_seconds), every):
        number = f"task {start + 1:,} of {len(stage.task_seconds):,} by time"
        took = stage.task_seconds[start]
        bars.append(TaskBar(f"{number}: {seconds(took)}", took))
    return bars
