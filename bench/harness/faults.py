"""The faults of `bench/faults.py`, each at a chosen moment of a query.

A listener counts the starts and ends of tasks, and causes the fault at the chosen one.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from pyspark import java_gateway

from harness.standalone import Standalone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Stages by what they read: tables, shuffles, keys for a split join, or shuffles and such keys.
MAP, JOIN, MARKING, MARKED = "map", "join", "marking", "marked"

#: How our jobs are called that mark keys.
_MARKING = "skewext: keys before a split join"

KILL, LOSE, LOSE_MARKS, STOP, FREEZE = "kill", "lose", "lose marks", "stop", "freeze"
DECOMMISSION = "decommission"

#: Sessions that some faults need: slow tasks start a second time, leaving executors move blocks.
PLAIN, SPECULATION, DECOMMISSIONING = "", "speculation", "decommissioning"

#: How long a frozen executor does nothing, while its tasks are begun elsewhere.
FROZEN_SECONDS = 1.5

#: Tasks of the joins of four inputs in stock Spark, up to the last one.
TASKS_BEFORE_LAST_JOIN = 12


@dataclass(frozen=True)
class Fault:
    """What happens, in which kind of stage, and after how many of its tasks have ended."""

    name: str
    what: str
    stage: str
    #: The session that it needs.
    session: str = PLAIN

    def at(self, random: Random, marks: bool) -> Moment:
        """A moment for it; with none ended it is the start of the first task."""
        # Stock Spark marks no keys: there it comes in the stage that would have waited for them.
        stage = JOIN if self.stage in (MARKING, MARKED) and not marks else self.stage
        tasks = random.randint(0, 3)
        if self.what == DECOMMISSION:
            # It takes seconds, so it begins with the longest stage: stock Spark's last join.
            tasks = 0 if marks or stage == MAP else TASKS_BEFORE_LAST_JOIN
        return Moment(stage, tasks, random.random() * 0.05, self.what == DECOMMISSION)


FAULTS = (
    Fault("executor killed in a map stage", KILL, MAP),
    Fault("executor killed in the join's stage", KILL, JOIN),
    Fault("executor killed while keys are marked", KILL, MARKING),
    Fault("shuffle files deleted before the join", LOSE, JOIN),
    Fault("worker stopped in the join's stage", STOP, JOIN),
    Fault("executor slow, speculation", FREEZE, JOIN, SPECULATION),
    Fault("worker stopped while keys are marked", STOP, MARKING),
    Fault("shuffle files deleted while keys are marked", LOSE, MARKING),
    Fault("shuffle files of the marks deleted", LOSE_MARKS, MARKED),
    Fault("executor decommissioned in a map stage", DECOMMISSION, MAP, DECOMMISSIONING),
    Fault("executor decommissioned in the join's stage", DECOMMISSION, JOIN, DECOMMISSIONING),
)


@dataclass(frozen=True)
class Moment:
    """The end of the so many-th task in stages of a kind, and some seconds later."""

    stage: str
    tasks: int
    delay: float
    #: Whether it waits for the start of the next task.
    at_start: bool = False


@dataclass(frozen=True)
class Stage:
    """A stage that begins, from the listener's event."""

    number: int
    attempt: int
    #: None if a stage is tried again whose output was only moved.
    tasks: int
    name: str
    parents: tuple[int, ...]
    #: That it writes, if it does.
    shuffle: int | None


class Injector:
    """Waits for a moment of the query that runs, and breaks something of the cluster then."""

    def __init__(self, spark: SparkSession, cluster: Standalone, hosts: Sequence[str]) -> None:
        self._cluster = cluster
        self._all_hosts = set(hosts)
        self._lock = threading.RLock()
        self._armed: tuple[Moment, Callable[[], None]] | None = None
        self._ended = 0
        self._kinds: dict[int, set[str]] = {}
        #: The shuffle of the stage that marked keys last.
        self._marks: int | None = None
        #: Whether the fault has happened.
        self.happened = False
        #: Stages that ran again, by what they read.
        self.again: Counter[str] = Counter()
        #: The process of an executor that was decommissioned.
        self._leaving: int | None = None
        #: Of workers, by their numbers.
        self._hosts = dict(enumerate(hosts))
        context: Any = spark.sparkContext
        self._context = context._jsc.sc()
        start: Any = java_gateway.ensure_callback_server_started
        start(context._gateway)
        self._context.addSparkListener(_Listener(self))

    def arm(self, moment: Moment, fault: Fault, random: Random) -> None:
        """Let it happen in the query that comes."""
        ways: dict[str, Callable[[Random], None]] = {
            KILL: self._kill,
            LOSE: self._lose,
            LOSE_MARKS: self._lose_marks,
            STOP: self._stop,
            FREEZE: self._freeze,
            DECOMMISSION: self._decommission,
        }
        break_it = ways[fault.what]
        with self._lock:
            self._armed, self._ended, self.happened = (moment, lambda: break_it(random)), 0, False
            self._marks = self._leaving = None
            self.again = Counter()

    def disarm(self) -> bool:
        """Whether it has happened, and an executor that leaves has left; it does no more."""
        self._context.listenerBus().waitUntilEmpty()
        with self._lock:
            self._armed = None
        return self.happened and self._leaving not in self._executors()

    def mend(self) -> None:
        """Have two workers again, with an executor each."""
        while len(self._cluster.running) < len(self._all_hosts):
            # One for each host: speculation takes another one than that of the slow task.
            free = self._all_hosts.difference(
                self._hosts[number] for number in self._cluster.running
            )
            self._hosts[self._cluster.workers] = min(free)
            self._cluster.add_worker(min(free))
        deadline = time.monotonic() + 240
        # The driver is one of them. An executor that leaves is there until its blocks have moved.
        while self._is_leaving() or (
            self._context.getExecutorMemoryStatus().size() <= len(self._all_hosts)
        ):
            if time.monotonic() > deadline:
                raise RuntimeError("no executor came back")
            time.sleep(0.05)

    def _is_leaving(self) -> bool:
        """Whether an executor still leaves, or none has replaced it."""
        executors = self._executors()
        return self._leaving is not None and (
            self._leaving in executors or len(executors) < len(self._all_hosts)
        )

    def _executors(self) -> list[int]:
        """Processes of all executors."""
        return [each for n in self._cluster.running for each in self._cluster.executors(n)]

    # Events of the listener

    def stage_submitted(self, stage: Stage) -> None:
        """Remember what a stage does."""
        if stage.name == _MARKING:
            self._kinds[stage.number], self._marks = {MARKING}, stage.shuffle
        elif any(MARKING in self._kinds.get(parent, ()) for parent in stage.parents):
            self._kinds[stage.number] = {JOIN, MARKED}
        else:
            self._kinds[stage.number] = {JOIN if stage.parents else MAP}
        if stage.attempt and stage.tasks:
            self.again.update(self._kinds[stage.number])

    def task(self, stage: int, ended: bool) -> None:
        """Count a task, and cause the fault when it is due."""
        with self._lock:
            if self._armed is None or self._armed[0].stage not in self._kinds.get(stage, ()):
                return
            self._ended += ended
            moment, act = self._armed
            if self._ended < moment.tasks or (ended and moment.at_start):
                return
            self._armed, self.happened = None, True
        timer = threading.Timer(moment.delay, act)
        timer.daemon = True
        timer.start()

    # What happens

    def _victim(self, random: Random) -> int | None:
        executors = self._executors()
        return random.choice(executors) if executors else None

    def _kill(self, random: Random) -> None:
        victim = self._victim(random)
        if victim is not None:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)

    def _decommission(self, random: Random) -> None:
        """Have an executor finish its tasks, move its shuffle files to the other one, and end."""
        self._leaving = self._victim(random)
        if self._leaving is not None:
            with suppress(ProcessLookupError):
                os.kill(self._leaving, signal.SIGPWR)

    def _freeze(self, random: Random) -> None:
        victim = self._victim(random)
        if victim is None:
            return
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGSTOP)
            time.sleep(FROZEN_SECONDS)
            os.kill(victim, signal.SIGCONT)

    def _stop(self, random: Random) -> None:
        self._cluster.stop_worker(random.choice(self._cluster.running))

    def _lose(self, random: Random, shuffle: str = "*") -> None:
        managers = sorted(self._cluster.local_directory.glob("spark-*/executor-*/blockmgr-*"))
        with_files = [each for each in managers if any(each.glob(f"*/shuffle_{shuffle}_*.data"))]
        if with_files:
            for path in random.choice(with_files).glob(f"*/shuffle_{shuffle}_*"):
                path.unlink(missing_ok=True)

    def _lose_marks(self, random: Random) -> None:
        self._lose(random, "*" if self._marks is None else str(self._marks))


class _Listener:
    """Spark's listener, in Python; it hears of stages and tasks alone."""

    def __init__(self, injector: Injector) -> None:
        self._injector = injector

    def onStageSubmitted(self, event: Any) -> None:  # noqa: N802
        info = event.stageInfo()
        parents, shuffle = info.parentIds(), info.shuffleDepId()
        self._injector.stage_submitted(
            Stage(
                info.stageId(),
                info.attemptNumber(),
                info.numTasks(),
                info.name(),
                tuple(parents.apply(i) for i in range(parents.size())),
                shuffle.get() if shuffle.isDefined() else None,
            )
        )

    def onTaskStart(self, event: Any) -> None:  # noqa: N802
        self._injector.task(event.stageId(), ended=False)

    def onTaskEnd(self, event: Any) -> None:  # noqa: N802
        self._injector.task(event.stageId(), ended=True)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on"):
            return lambda *_: None
        raise AttributeError(name)

    class Java:
        implements = ("org.apache.spark.scheduler.SparkListenerInterface",)
