"""When stages are done that share the cores of a cluster, if every task's time is known.

Tasks are started in the way of Spark's FIFO scheduler: a core that is free takes the next task of
the stage that became ready first. Nothing here knows what a stage does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(frozen=True)
class Stage:
    """Seconds of its tasks in the order of their start, and the stages that it waits for."""

    tasks: Sequence[float]
    #: Positions in the list of stages.
    parents: tuple[int, ...] = ()
    #: Seconds that bringing its input takes at least, however many cores there are.
    transfer: float = 0.0


@dataclass(frozen=True)
class Span:
    """Seconds from the start of the query."""

    start: float
    end: float


@dataclass(frozen=True)
class Driver:
    """What the driver takes, one thing after the other."""

    #: Seconds to start a task.
    task: float = 0.0
    #: Seconds from the end of a stage's parents to its first task: planning, serializing.
    stage: float = 0.0


_TASK_DONE, _STAGE_DONE, _STAGE_READY = range(3)


def schedule(stages: Sequence[Stage], cores: int, driver: Driver | None = None) -> list[Span]:
    """Tell when each stage begins and ends."""
    if cores < 1:
        raise ValueError("a cluster has at least one core")
    spans = dict(_run(stages, cores, driver or Driver()))
    if len(spans) < len(stages):
        raise ValueError("the stages wait for each other")
    return [spans[index] for index in range(len(stages))]


def makespan(stages: Sequence[Stage], cores: int, driver: Driver | None = None) -> float:
    """Seconds until all stages are done."""
    return max((span.end for span in schedule(stages, cores, driver)), default=0.0)


def _run(stages: Sequence[Stage], cores: int, driver: Driver) -> Iterator[tuple[int, Span]]:
    waits_for = [set(stage.parents) for stage in stages]
    unfinished = [len(stage.tasks) for stage in stages]
    pending = [deque(stage.tasks) for stage in stages]
    start: dict[int, float] = {}
    ready: deque[int] = deque()
    events: list[tuple[float, int, int]] = []
    for index, parents in enumerate(waits_for):
        if not parents:
            heappush(events, (0.0, _STAGE_READY, index))
    free = cores
    driver_free = 0.0
    while events:
        now = events[0][0]
        # All that happens at this moment, before any free core takes a task.
        while events and events[0][0] == now:
            _, what, index = heappop(events)
            if what == _STAGE_READY:
                ready.append(index)
                if not pending[index]:
                    start[index] = now
                    heappush(events, (now, _STAGE_DONE, index))
            elif what == _TASK_DONE:
                free += 1
                unfinished[index] -= 1
                if not unfinished[index]:
                    end = max(now, start[index] + stages[index].transfer)
                    heappush(events, (end, _STAGE_DONE, index))
            else:
                yield index, Span(start[index], now)
                for child, parents in enumerate(waits_for):
                    if index in parents:
                        parents.remove(index)
                        if not parents:
                            heappush(events, (now + driver.stage, _STAGE_READY, child))
        while free and ready:
            index = ready[0]
            if not pending[index]:
                ready.popleft()
                continue
            driver_free = max(driver_free, now) + driver.task
            start.setdefault(index, driver_free)
            heappush(events, (driver_free + pending[index].popleft(), _TASK_DONE, index))
            free -= 1
