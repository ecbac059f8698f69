"""How evenly the tasks of a join share its work, from the times that they took."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

#: Share of the longest task's time from which on a stage's longest task matters.
CLOSE = 0.5


def balance(stages: Sequence[dict[str, Any]], with_scans: bool = False) -> dict[str, float] | None:
    """Longest and median task, in ms, of the stage in which one task holds up the others most.

    Of the stages that read a shuffle, or of all where none does, only those count whose longest
    task is at least half as long as the longest of all: that small tasks of another stage differ
    holds nobody up. With scans, all stages of several tasks count: that of a join with a broadcast
    side reads no shuffle.
    """
    shuffled = any(stage["parents"] for stage in stages)
    joining = [
        stage
        for stage in stages
        if stage["parents"] or not shuffled or (with_scans and len(stage["task_ms"]) > 1)
    ]
    times = [stage["task_ms"] for stage in joining if stage["task_ms"]]
    longest = max((max(tasks) for tasks in times), default=0)
    if not longest:
        return None

    def ratio(tasks: Sequence[float]) -> float:
        return max(tasks) / max(1.0, median(tasks))

    worst = max((tasks for tasks in times if max(tasks) >= CLOSE * longest), key=ratio)
    return {
        "longest_ms": float(max(worst)),
        "median_ms": float(median(worst)),
        "ratio": ratio(worst),
        "tasks": float(len(worst)),
    }
