"""Telling a function how far the report is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = 0.3
# What the stages of a report are called, see KeyPass.scala.
_STAGE = "skew_report"


@contextmanager
def watched(
    spark: SparkSession, progress: Callable[[int, int], None] | None, seconds: float = _SECONDS
) -> Iterator[None]:
    """Call `progress` with the tasks done and known, as long as the block runs."""
    if progress is None:
        yield
        return
    tracker = spark.sparkContext.statusTracker()
    # Stage -> (tasks done, tasks), kept after the tracker has forgotten the stage.
    stages: dict[int, tuple[int, int]] = {}
    finished = threading.Event()
    failures: list[BaseException] = []

    def look() -> None:
        active = set(tracker.getActiveStageIds())
        for stage, (_, tasks) in list(stages.items()):
            if stage not in active:
                stages[stage] = (tasks, tasks)
        for stage in active:
            info = tracker.getStageInfo(stage)
            if info is not None and info.name == _STAGE:
                stages[stage] = (info.numCompletedTasks, info.numTasks)

    def tell() -> None:
        done = sum(each for each, _ in stages.values())
        progress(done, sum(tasks for _, tasks in stages.values()))

    def watch() -> None:
        try:
            while not finished.wait(seconds):
                look()
                if stages:
                    tell()
        except Exception as failure:
            failures.append(failure)

    thread = threading.Thread(target=watch, name="skew_report progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
    if failures:
        raise failures[0]
    stages.update({stage: (tasks, tasks) for stage, (_, tasks) in stages.items()})
    if stages:
        tell()
