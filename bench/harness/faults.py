"""Faults of a cluster, each at a chosen moment of a query: what `bench/faults.py` breaks, and how.

Spark tells a listener when tasks start and end; at the one that was chosen the fault happens.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from pyspark import java_gateway

from harness.standalone import Standalone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Stages by what they read: tables, shuffles, or keys for a split join.
MAP, JOIN, MARKING = "map", "join", "marking"

#: How our jobs are called that mark keys.
_MARKING = "skewext: keys before a split join"

KILL, LOSE, STOP, FREEZE = "kill", "lose", "stop", "freeze"

#: How long a frozen executor does nothing, while its tasks are begun elsewhere.
FROZEN_SECONDS = 1.5


@dataclass(frozen=True)
class Fault:
    """What happens, in which kind of stage, and after how many of its tasks have ended."""

    name: str
    what: str
    stage: str
    #: Only where Spark begins slow tasks a second time.
    speculation: bool = False

    def at(self, random: Random) -> Moment:
        """A moment for it; with none ended it is the start of the first task."""
        return Moment(self.stage, random.randint(0, 3), random.random() * 0.05)


FAULTS = (
    Fault("executor killed in a map stage", KILL, MAP),
    Fault("executor killed in the join's stage", KILL, JOIN),
    Fault("executor killed while keys are marked", KILL, MARKING),
    Fault("shuffle files deleted before the join", LOSE, JOIN),
    Fault("worker stopped in the join's stage", STOP, JOIN),
    Fault("executor slow, speculation", FREEZE, JOIN, speculation=True),
)


@dataclass(frozen=True)
class Moment:
    """The end of the so many-th task in stages of a kind, and some seconds later."""

    stage: str
    tasks: int
    delay: float


class Injector:
    """Waits for a moment of the query that runs, and breaks something of the cluster then."""

    def __init__(self, spark: SparkSession, cluster: Standalone, hosts: Sequence[str]) -> None:
        self._cluster = cluster
        self._all_hosts = set(hosts)
        self._lock = threading.RLock()
        self._armed: tuple[Moment, Callable[[], None]] | None = None
        self._ended = 0
        self._kinds: dict[int, str] = {}
        #: Whether the fault has happened.
        self.happened = False
        #: Of workers, by their numbers.
        self._hosts = dict(enumerate(hosts))
        context: Any = spark.sparkContext
        self._context = context._jsc.sc()
        start: Any = java_gateway.ensure_callback_server_started
        start(context._gateway)
        self._context.addSparkListener(_Listener(self))

    def arm(self, moment: Moment, fault: Fault, random: Random) -> None:
        """Let it happen in the query that comes."""
        break_it = {
            KILL: self._kill,
            LOSE: self._lose,
            STOP: self._stop,
            FREEZE: self._freeze,
        }[fault.what]
        with self._lock:
            self._armed, self._ended, self.happened = (moment, lambda: break_it(random)), 0, False

    def disarm(self) -> bool:
        """Whether it has happened; if not, it does no more."""
        with self._lock:
            self._armed = None
        return self.happened

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
        # The driver is one of them.
        while self._context.getExecutorMemoryStatus().size() <= len(self._all_hosts):
            if time.monotonic() > deadline:
                raise RuntimeError("no executor came back")
            time.sleep(0.05)

    # What the listener tells

    def stage_submitted(self, stage: int, name: str, parents: int) -> None:
        """Remember what a stage does."""
        self._kinds[stage] = MARKING if name == _MARKING else JOIN if parents else MAP

    def task(self, stage: int, ended: bool) -> None:
        """Count it, and do what is due."""
        with self._lock:
            if self._armed is None or self._kinds.get(stage) != self._armed[0].stage:
                return
            self._ended += ended
            moment, act = self._armed
            if self._ended < moment.tasks:
                return
            self._armed, self.happened = None, True
        timer = threading.Timer(moment.delay, act)
        timer.daemon = True
        timer.start()

    # What happens

    def _victim(self, random: Random) -> int | None:
        executors = [p for n in self._cluster.running for p in self._cluster.executors(n)]
        return random.choice(executors) if executors else None

    def _kill(self, random: Random) -> None:
        victim = self._victim(random)
        if victim is not None:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)

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

    def _lose(self, random: Random) -> None:
        managers = sorted(self._cluster.local_directory.glob("spark-*/executor-*/blockmgr-*"))
        with_files = [each for each in managers if any(each.glob("*/shuffle_*.data"))]
        if with_files:
            for path in random.choice(with_files).glob("*/shuffle_*"):
                path.unlink(missing_ok=True)


class _Listener:
    """Spark's listener, in Python; it hears of stages and tasks alone."""

    def __init__(self, injector: Injector) -> None:
        self._injector = injector

    def onStageSubmitted(self, event: Any) -> None:  # noqa: N802
        info = event.stageInfo()
        self._injector.stage_submitted(info.stageId(), info.name(), info.parentIds().size())

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
