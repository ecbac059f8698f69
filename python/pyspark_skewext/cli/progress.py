"""Showing how far Spark is, in a terminal or in a log."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TERMINAL_SECONDS = 0.3
_LOG_SECONDS = 5.0


class Progress:
    """A line on `stream` about the tasks of the running jobs.

    In a terminal the line is rewritten in place; elsewhere a new one is printed now and then, and
    only when something has changed.

    Parameters
    ----------
    spark : SparkSession
        Its status tracker is asked.
    stream : TextIO
        Usually standard error.
    seconds : float, optional
        Time between two looks.
    """

    def __init__(self, spark: SparkSession, stream: TextIO, seconds: float | None = None) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._stream = stream
        self._terminal = stream.isatty()
        self._seconds = seconds or (_TERMINAL_SECONDS if self._terminal else _LOG_SECONDS)
        self._started = time.monotonic()
        self._step = ""
        self._detail = ""
        # Stage -> (tasks done, tasks), kept after the tracker has forgotten the stage.
        self._stages: dict[int, tuple[int, int]] = {}
        self._shown = ""
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._finished.set()
        self._thread.join()
        self._clear()

    def step(self, text: str) -> None:
        """Say what begins now."""
        self._step = text
        self._detail = ""
        self._stages = {}
        self._show(text)

    def detail(self, text: str) -> None:
        """Say how far a step is that has no tasks, with the next look."""
        self._detail = text

    def _watch(self) -> None:
        while not self._finished.wait(self._seconds):
            self._look()

    def _look(self) -> None:
        active = self._tracker.getActiveStageIds()
        for stage, (_, tasks) in list(self._stages.items()):
            if stage not in active:
                self._stages[stage] = (tasks, tasks)
        for stage in active:
            info = self._tracker.getStageInfo(stage)
            if info is not None:
                self._stages[stage] = (info.numCompletedTasks, info.numTasks)
        if self._stages:
            done, tasks = (sum(column) for column in zip(*self._stages.values()))
            self._show(f"{self._step}: {done} of {tasks} tasks done, {len(active)} stages running")
        elif self._detail:
            self._show(f"{self._step}: {self._detail}")

    def _show(self, text: str) -> None:
        if text == self._shown and not self._terminal:
            return
        line = f"[{time.monotonic() - self._started:4.0f} s] {text}"
        if self._terminal:
            self._clear()
            self._stream.write(line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()
        self._shown = text

    def _clear(self) -> None:
        if self._terminal:
            # Back to the start of the line, and delete to its end.
            self._stream.write("\r\x1b[K")
            self._stream.flush()
