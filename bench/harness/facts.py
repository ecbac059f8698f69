"""Facts of a run from Spark's status stores: the executed plan, tasks, bytes and spills.

The stores exist without the web interface, too.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import Counter
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyspark
from py4j.protocol import Py4JJavaError

import pyspark_skewext as skewext
from harness.peers import PACKAGES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Comet's operators, by the names that expected plans have.
_SAME = {"CometExchange": "Exchange", "CometColumnarExchange": "Exchange", "CometSort": "Sort"}
#: Our exchanges have the name of Spark's, and this mark in their description.
_BY_COLUMN = "by column"
#: The marks of a join that Spark has split, and of one that we have split.
_SPARK_SPLIT = "skew=true"
_OURS_SPLIT = re.compile(r"\w+ \(skew: (.*)\)$")
#: A scan with a filter for one key.
_BY_KEY = re.compile(r"PushedFilters: \[[^\]]*EqualTo\(device_id,")
#: Operators that do not show how a join is done.
_IGNORED = ("WholeStageCodegen", "AdaptiveSparkPlan", "InputAdapter", "OverwriteByExpression")


class Watch:
    """Collects the facts of all queries of a session since it was made."""

    def __init__(self, spark: SparkSession) -> None:
        session: Any = spark
        self._context = session._jsc.sc()
        self._sql = session._jsparkSession.sharedState().statusStore()
        gateway = session.sparkContext._gateway
        self._median_and_most = gateway.new_array(gateway.jvm.double, 2)
        self._median_and_most[0], self._median_and_most[1] = 0.5, 1.0
        self._settle()
        self._before = self._newest()

    def _newest(self) -> int:
        """The id of the newest execution; their number stops growing when Spark drops old ones."""
        count = int(self._sql.executionsCount())
        return int(self._sql.executionsList(count - 1, 1).apply(0).executionId()) if count else -1

    def _settle(self) -> None:
        self._context.listenerBus().waitUntilEmpty()

    def facts(self) -> dict[str, Any]:
        """Operators, splits, stages and sums of the queries since."""
        self._settle()
        executions = self._sql.executionsList(0, 1_000_000)
        operators: Counter[str] = Counter()
        splits: list[str] = []
        stages: set[int] = set()
        jobs: set[int] = set()
        for i in reversed(range(executions.size())):
            execution = executions.apply(i)
            if int(execution.executionId()) <= self._before:
                break
            found, described = self._operators(execution.executionId())
            operators += found
            splits += described
            stages |= _numbers(execution.stages())
            jobs |= _numbers(execution.jobs().keys())
        known = {"operators": dict(sorted(operators.items())), **self._sums(stages, jobs)}
        return {**known, "splits": splits} if splits else known

    def _operators(self, execution: int) -> tuple[Counter[str], list[str]]:
        """Operators by name, and the descriptions of our splits."""
        nodes = self._sql.planGraph(execution).allNodes()
        listed = [
            (str(node.name()).strip(), str(node.desc()))
            for node in (nodes.apply(i) for i in range(nodes.size()))
        ]
        matches = [_OURS_SPLIT.match(name) for name, _ in listed]
        # "WholeStageCodegen (1)", "SortMergeJoin(skew=true)", "Scan parquet"
        plain = [name.split("(")[0].strip() for (name, _), m in zip(listed, matches) if m is None]
        counts = Counter(_SAME.get(name, name) for name in plain if not name.startswith(_IGNORED))
        exchanges = [text for name, text in listed if name == "Exchange"]
        special = Counter(
            NativeExchange=plain.count("CometExchange"),
            ColumnExchange=sum(_BY_COLUMN in text for text in exchanges),
            OursSplit=sum(m is not None for m in matches),
            SparkSplit=sum(_SPARK_SPLIT in name for name, _ in listed),
            ScanByKey=sum(_BY_KEY.search(text) is not None for _, text in listed),
        )
        return counts + special, [m[1] for m in matches if m is not None]

    def _run(self, stages: set[int], jobs: set[int]) -> list[Any]:
        """The stages that have run, by number.

        Spark keeps the last `spark.ui.retainedStages` stages of a session and drops skipped ones
        first. If a stage that has run is missing, this is an error.
        """
        store = self._context.statusStore()
        known = []
        for number in sorted(stages):
            try:
                known.append(store.lastStageAttempt(number))
            except Py4JJavaError as error:
                if "NoSuchElementException" not in str(error.java_exception):
                    raise
        run = [stage for stage in known if str(stage.status()) != "SKIPPED"]
        if len(known) < len(stages):
            completed = sum(int(store.job(job).numCompletedStages()) for job in jobs)
            if len(run) < completed:
                raise RuntimeError(f"of {completed} stages Spark has dropped all but {len(run)}")
        return run

    def _sums(self, stages: set[int], jobs: set[int]) -> dict[str, Any]:
        store = self._context.statusStore()
        totals: Counter[str] = Counter()
        listed = []
        peak = 0
        for stage in self._run(stages, jobs):
            totals["shuffle_bytes"] += int(stage.shuffleWriteBytes())
            totals["spilled_disk_bytes"] += int(stage.diskBytesSpilled())
            totals["task_ms"] += int(stage.executorRunTime())
            totals["task_cpu_ms"] += int(stage.executorCpuTime()) // 1_000_000
            totals["gc_ms"] += int(stage.jvmGcTime())
            about = {
                "tasks": int(stage.numTasks()),
                "scans": int(stage.shuffleReadRecords()) == 0,
                "rows_in": int(stage.inputRecords()) + int(stage.shuffleReadRecords()),
            }
            summary = store.taskSummary(stage.stageId(), stage.attemptId(), self._median_and_most)
            if summary.isDefined():
                peak = max(peak, int(summary.get().peakExecutionMemory().apply(1)))
                duration = summary.get().duration()
                about["median_ms"], about["longest_ms"] = duration.apply(0), duration.apply(1)
                listed.append(about)
        return {**totals, "peak_task_memory_bytes": peak, "stages": listed}


def _numbers(found: Any) -> set[int]:
    """The numbers of a Scala collection."""
    return {int(number) for number in str(found.mkString(",")).split(",") if number}


#: A stage matters if its longest task takes this share of the longest of all.
CLOSE = 0.5


def balance(stages: list[dict[str, Any]], with_scans: bool = False) -> dict[str, float] | None:
    """Longest and median task, in ms, of the stage with the largest ratio between the two.

    Only stages that read a shuffle count, or all if none does, and only those whose longest task
    is at least half as long as the longest of all: small tasks delay no query. `with_scans` adds
    scans with several tasks, as a join with a broadcast side reads no shuffle.
    """
    shuffled = any(not stage["scans"] for stage in stages)
    joining = [
        stage
        for stage in stages
        if not stage["scans"] or not shuffled or (with_scans and stage["tasks"] > 1)
    ]
    longest = max((stage["longest_ms"] for stage in joining), default=0)
    if not longest:
        return None

    def ratio(stage: dict[str, Any]) -> float:
        return float(stage["longest_ms"] / max(1.0, stage["median_ms"]))

    worst = max((s for s in joining if s["longest_ms"] >= CLOSE * longest), key=ratio)
    return {
        "longest_ms": float(worst["longest_ms"]),
        "median_ms": float(worst["median_ms"]),
        "ratio": ratio(worst),
        "tasks": float(worst["tasks"]),
    }


def technique_of(joined: DataFrame) -> dict[str, str]:
    """The technique that `skew_join` has chosen."""
    found = re.search(r"skew_join by (\w+)", str(skewext.explain(joined)))
    return {"technique": found[1]} if found else {}


def versions(spark: SparkSession) -> dict[str, str]:
    """The versions of a session."""
    session: Any = spark
    properties = session._jvm.java.lang.System
    peers = {}
    for package in PACKAGES.values():
        with suppress(PackageNotFoundError):
            peers[package] = version(package)
    return {
        "spark": spark.version,
        "java": f"{properties.getProperty('java.version')} {properties.getProperty('java.vendor')}",
        "skewext": skewext.__version__,
        "duckdb": duckdb.__version__,
        **peers,
    }


def machine() -> dict[str, Any]:
    """The machine, without anything that identifies its owner."""
    return {
        "cores": os.cpu_count() or 1,
        "memory_gb": round(memory_bytes() / 2**30, 1),
        "cpu": _cpu(),
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
    }


def memory_bytes() -> int:
    """Memory of the machine."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        return int(text.split("MemTotal:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        found = subprocess.run(["sysctl", "-n", "hw.memsize"], capture_output=True, text=True)
        return int(found.stdout or 8 * 2**30)


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return text.split("model name")[1].split(":", 1)[1].split("\n")[0].strip()
    except (OSError, IndexError):
        return platform.processor() or "unknown"
