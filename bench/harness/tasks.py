"""One task of a large job, run alone and watched: in a session that this process starts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from harness.questions import is_join
from harness.sessions import configured, whole_heap
from harness.variants import OWN_SHUFFLE, SWITCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Found = dict[str, Any]

MB = 2**20
WAYS = {
    "stock": {SWITCH: "false"},
    "ours": {},
    "ours-plain": {OWN_SHUFFLE: "false"},
}

_QUERY = "SELECT * FROM big LEFT JOIN small ON big.k = small.small_k"


@dataclass(frozen=True)
class Shape:
    """A task."""

    name: str
    #: Bytes of values that it writes, or that a block has which it reads.
    bytes: int
    columns: int
    #: Which it writes.
    partitions: int = 1
    #: Which it reads; 0 for a map task.
    blocks: int = 0
    #: Whether half of the blocks come from another executor.
    network: bool = False


@dataclass(frozen=True)
class Trial:
    """How a process runs the task."""

    way: str
    data: Path
    home: Path
    heap: str
    rounds: int
    partitions: int
    #: Settings of ours.
    conf: dict[str, str] = field(default_factory=dict)


def run(shape: Shape, trial: Trial) -> Found:
    """The figures of each counted task, after one that does not count."""
    spark = _session(shape, trial)
    try:
        for name in ("big", "small"):
            spark.read.parquet(str(trial.data / name)).createOrReplaceTempView(name)
        read = _plan(spark)
        facts = {"exchange": _kind(_exchange(read)), "join": _join(read)}

        def task() -> int:
            if shape.blocks:
                # The exchange remembers its map outputs: their tasks run the first time only.
                return int(read.execute().count())
            _write(spark, _exchange(_plan(spark)))
            return 0

        ran = [_watched(spark, task) for _ in range(trial.rounds + 1)]
        return {**facts, "rows": ran[0][1], "tasks": [figures for figures, _ in ran[1:]]}
    finally:
        spark.stop()


def _plan(spark: SparkSession) -> Any:
    frame: Any = spark.sql(_QUERY)
    return frame._jdf.queryExecution().executedPlan()


def _session(shape: Shape, trial: Trial) -> SparkSession:
    settings = {
        "spark.driver.memory": trial.heap,
        "spark.local.dir": str(trial.home),
        "spark.sql.warehouse.dir": str(trial.home / "warehouse"),
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        # The map stage alone is run, which adaptive execution would hide.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(trial.partitions),
        # A task for each file, however small.
        "spark.sql.files.maxPartitionBytes": "64g",
        "spark.sql.files.openCostInBytes": "64g",
        "spark.sql.files.minPartitionNum": "1",
        "spark.ui.retainedTasks": "1000",
        **WAYS[trial.way],
        **trial.conf,
    }
    if not shape.network:
        settings["spark.driver.extraJavaOptions"] = whole_heap(trial.heap)
        return configured("local[1]", settings)
    megabytes = int(trial.heap[:-1]) * 1024
    settings.update(
        {
            "spark.executor.memory": trial.heap,
            "spark.executor.extraJavaOptions": whole_heap(trial.heap),
            # Both executors are on this machine.
            "spark.shuffle.readHostLocalDisk": "false",
        }
    )
    return configured(f"local-cluster[2,1,{megabytes}]", settings)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for i in range(children.size()):
        yield from _nodes(children.apply(i))


def _exchange(plan: Any) -> Any:
    """The exchange of the large table."""
    exchanges = (node for node in _nodes(plan) if str(node.nodeName()) == "Exchange")
    return next(node for node in exchanges if str(node.output().head().name()) == "k")


def _join(plan: Any) -> str:
    return next(name for node in _nodes(plan) if is_join(name := str(node.nodeName())))


def _kind(exchange: Any) -> str:
    """Spark's exchange, or ours."""
    name = str(exchange.getClass().getSimpleName())
    return "Spark's" if name == "ShuffleExchangeExec" else "columns"


def _write(spark: SparkSession, exchange: Any) -> None:
    """Run the tasks below an exchange."""
    session: Any = spark
    concurrent = session._jvm.scala.concurrent
    concurrent.Await.result(exchange.submitShuffleJob(), concurrent.duration.Duration.create("1 h"))


def _watched(spark: SparkSession, task: Callable[[], int]) -> tuple[Found, int]:
    session: Any = spark
    session._jvm.java.lang.System.gc()
    time.sleep(0.3)
    group = f"task at {time.monotonic()}"
    spark.sparkContext.setJobGroup(group, "")
    with _Peaks(spark) as peaks:
        rows = task()
    session._jsc.sc().listenerBus().waitUntilEmpty()
    tracker = spark.sparkContext.statusTracker()
    stages = [
        number
        for job in tracker.getJobIdsForGroup(group)
        for number in getattr(tracker.getJobInfo(job), "stageIds", ())
    ]
    store = session._jsc.sc().statusStore()
    ran = [store.lastStageAttempt(number) for number in sorted(set(stages))]
    # The last stage has the task; those before it, if they ran, wrote the blocks.
    return {**_figures(ran[-1]), **peaks.found()}, rows


def _figures(stage: Any) -> Found:
    return {
        "seconds": int(stage.executorRunTime()) / 1000,
        "cpu_seconds": round(int(stage.executorCpuTime()) / 1e9, 3),
        "gc_ms": int(stage.jvmGcTime()),
        "shuffle_mb": round((stage.shuffleWriteBytes() or stage.shuffleReadBytes()) / MB, 1),
        "spilled_mb": round(int(stage.diskBytesSpilled()) / MB, 1),
        "task_peak_mb": round(int(stage.peakExecutionMemory()) / MB, 1),
        "wait_ms": int(stage.shuffleFetchWaitTime()),
    }


class _Peaks:
    """The most execution memory and open files of the driver, as it is asked again and again.

    Tasks count the memory of some operators only. Executors elsewhere are not seen.
    """

    def __init__(self, spark: SparkSession) -> None:
        session: Any = spark
        context: Any = spark.sparkContext
        is_local = context.master.startswith("local[")
        self._memory = session._jvm.org.apache.spark.SparkEnv.get().memoryManager()
        self._open = Path(f"/proc/{context._gateway.proc.pid}/fd")
        self._is_seen = is_local and self._open.exists()
        self._before = self._files()
        self._most = [0, 0]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def _files(self) -> int:
        return len(os.listdir(self._open)) if self._is_seen else 0

    def _ask(self) -> None:
        while not self._done.wait(0.005):
            now = (int(self._memory.executionMemoryUsed()), self._files() - self._before)
            self._most = [max(pair) for pair in zip(self._most, now)]

    def __enter__(self) -> _Peaks:
        if self._is_seen:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._is_seen:
            self._thread.join()

    def found(self) -> Found:
        """Both figures, where they are seen."""
        memory, files = self._most
        return {"memory_mb": round(memory / MB, 1), "files": files} if self._is_seen else {}
