"""Progress of a running report, for a function of the user."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = 0.3

Progress = Callable[[int, int], None]


@contextmanager
def polled(look: Callable[[], tuple[int, int]], progress: Progress | None) -> Iterator[None]:
    """While the block runs, call `progress` with the numbers that `look` returns."""
    if progress is None:
        yield
        return
    finished = threading.Event()
    failures: list[BaseException] = []

    def report() -> None:
        done, known = look()
        if known:
            progress(done, known)

    def watch() -> None:
        try:
            while not finished.wait(_SECONDS):
                report()
        except Exception as failure:
            failures.append(failure)

    thread = threading.Thread(target=watch, name="skewext progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
    if failures:
        raise failures[0]
    report()


@contextmanager
def watched(spark: SparkSession, progress: Progress | None) -> Iterator[None]:
    """While the block runs, call `progress` with the tasks done and known of its jobs."""
    if progress is None:
        yield
        return
    context = spark.sparkContext
    tracker = context.statusTracker()
    # Other threads may run reports, too.
    tag = f"skewext_{uuid4().hex}"
    # Stage -> (tasks done, tasks), kept after the tracker has forgotten the stage.
    stages: dict[int, tuple[int, int]] = {}
    # The tracker receives the last tasks a little later.
    over = threading.Event()

    def look() -> tuple[int, int]:
        jobs = [] if over.is_set() else context._jsc.sc().statusTracker().getJobIdsForTag(tag)
        infos = [info for info in map(tracker.getJobInfo, jobs) if info is not None]
        active = {stage for info in infos for stage in info.stageIds}
        active &= set(tracker.getActiveStageIds())
        for stage, (_, tasks) in list(stages.items()):
            if stage not in active:
                stages[stage] = (tasks, tasks)
        for stage in active:
            info = tracker.getStageInfo(stage)
            if info is not None:
                stages[stage] = (info.numCompletedTasks, info.numTasks)
        return sum(done for done, _ in stages.values()), sum(tasks for _, tasks in stages.values())

    context.addJobTag(tag)
    try:
        with polled(look, progress):
            yield
            over.set()
    finally:
        context.removeJobTag(tag)
