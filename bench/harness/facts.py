"""What Spark itself says about a run: the plan that was executed, its tasks, bytes and spills.

It comes from Spark's status stores, which are there without the web interface too.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Names of Comet's operators for what the plans of variants count.
_SAME = {"CometExchange": "Exchange", "CometColumnarExchange": "Exchange", "CometSort": "Sort"}

#: What marks our own exchange, which has the name of Spark's.
_BULK = "bulk rows"
_BY_COLUMN = "by column"

#: How Spark marks a join that it has split, and how we do.
_SPARK_SPLIT = "skew=true"
_OURS_SPLIT = re.compile(r"MultiFullJoin \(skew: (.*)\)$")

#: How many buckets of a table a scan reads.
_BUCKETS = re.compile(r"SelectedBucketsCount: (\d+) out of")

#: A scan that is asked for one key alone.
_BY_KEY = re.compile(r"PushedFilters: \[[^\]]*EqualTo\(device_id,")

#: Operators that say nothing about how a join is done.
_IGNORED = ("WholeStageCodegen", "AdaptiveSparkPlan", "InputAdapter", "OverwriteByExpression")


class Watch:
    """Collects what happened in a session since it was made."""

    def __init__(self, spark: SparkSession) -> None:
        session: Any = spark
        self._context = session._jsc.sc()
        self._gateway = session.sparkContext._gateway
        self._sql = session._jsparkSession.sharedState().statusStore()
        # One call for all tasks of a stage, in the form of Spark's REST interface.
        jvm = self._gateway.jvm
        self._mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper().registerModule(
            jvm.com.fasterxml.jackson.module.scala.DefaultScalaModule()
        )
        self._settle()
        self._before = self._newest()

    def _newest(self) -> int:
        """The id of the newest execution: their number stands still when Spark forgets old ones."""
        count = int(self._sql.executionsCount())
        return int(self._sql.executionsList(count - 1, 1).apply(0).executionId()) if count else -1

    def _settle(self) -> None:
        self._context.listenerBus().waitUntilEmpty()

    def facts(self) -> dict[str, Any]:
        """Sum up the SQL executions since."""
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
        stage_facts = self._stage_facts(self._run(stages, jobs))
        known = {"operators": dict(sorted(operators.items())), **stage_facts}
        return {**known, "splits": splits} if splits else known

    def _operators(self, execution: int) -> tuple[Counter[str], list[str]]:
        """Operators by name, and what those of ours that were split say about it."""
        nodes = self._sql.planGraph(execution).allNodes()
        listed = [nodes.apply(i) for i in range(nodes.size())]
        # "WholeStageCodegen (1)", "SortMergeJoin(skew=true)", "Scan parquet "
        plain = (str(node.name()).split("(")[0].strip() for node in listed)
        counts = Counter(_SAME.get(name, name) for name in plain if not name.startswith(_IGNORED))
        exchanges = [str(node.desc()) for node in listed if str(node.name()) == "Exchange"]
        matches = (_OURS_SPLIT.match(str(node.name()).strip()) for node in listed)
        ours = [match[1] for match in matches if match]
        spark = sum(_SPARK_SPLIT in str(node.name()) for node in listed)
        read = (_BUCKETS.search(str(node.desc())) for node in listed)
        buckets = sum(int(match[1]) for match in read if match)
        by_key = sum(_BY_KEY.search(str(node.desc())) is not None for node in listed)
        split = Counter(
            BulkExchange=sum(_BULK in exchange for exchange in exchanges),
            ColumnExchange=sum(_BY_COLUMN in exchange for exchange in exchanges),
            OursSplit=len(ours),
            SparkSplit=spark,
            Buckets=buckets,
            ScanByKey=by_key,
        )
        return counts + split, ours

    def _run(self, stages: set[int], jobs: set[int]) -> list[Any]:
        """The stages that have run, by number.

        Of a session's stages Spark keeps the last `spark.ui.retainedStages`, and skipped ones,
        which have no time, are the first to go. One that has run must not be missing.
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
                raise RuntimeError(f"of {completed} stages Spark has forgotten all but {len(run)}")
        return run

    def _stage_facts(self, stages: list[Any]) -> dict[str, Any]:
        store = self._context.statusStore()
        maximum = self._gateway.new_array(self._gateway.jvm.double, 1)
        maximum[0] = 1.0
        totals: Counter[str] = Counter()
        tasks = []
        recorded = []
        peak = 0
        for stage in stages:
            tasks.append(int(stage.numTasks()))
            recorded.append(self._record(store, stage))
            totals["shuffle_bytes"] += int(stage.shuffleWriteBytes())
            totals["spilled_memory_bytes"] += int(stage.memoryBytesSpilled())
            totals["spilled_disk_bytes"] += int(stage.diskBytesSpilled())
            totals["task_ms"] += int(stage.executorRunTime())
            totals["gc_ms"] += int(stage.jvmGcTime())
            summary = store.taskSummary(stage.stageId(), stage.attemptId(), maximum)
            if summary.isDefined():
                peak = max(peak, int(summary.get().peakExecutionMemory().apply(0)))
        facts = {"tasks": tasks, **totals, "peak_task_memory_bytes": peak}
        return {**facts, "stages": _related(recorded)}

    def _record(self, store: Any, stage: Any) -> dict[str, Any]:
        """What `simulate.py` wants to know of a stage, with Spark's numbers of its RDDs."""
        about = self._json(stage)
        listed = self._json(store.taskList(stage.stageId(), stage.attemptId(), 1_000_000))
        done = [task for task in listed if task["status"] == "SUCCESS"]
        # By partition.
        done.sort(key=lambda task: int(task["index"]))
        metrics = [task["taskMetrics"] for task in done]
        edges = store.operationGraphForStage(stage.stageId()).incomingEdges()
        return {
            "stage": about["stageId"],
            "rdds": about["rddIds"],
            "reads": [int(edges.apply(i).fromId()) for i in range(edges.size())],
            "start_ms": about["submissionTime"],
            "end_ms": about["completionTime"],
            "rows_in": about["inputRecords"] + about["shuffleReadRecords"],
            "bytes_in": about["inputBytes"] + about["shuffleReadBytes"],
            "rows_out": about["shuffleWriteRecords"],
            "bytes_out": about["shuffleWriteBytes"],
            "task_ms": [task["duration"] for task in done],
            "task_rows": [
                m["inputMetrics"]["recordsRead"] + m["shuffleReadMetrics"]["recordsRead"]
                for m in metrics
            ],
        }

    def _json(self, value: Any) -> Any:
        return json.loads(self._mapper.writeValueAsString(value))


def _numbers(found: Any) -> set[int]:
    """Of a collection of Scala's."""
    return {int(number) for number in str(found.mkString(",")).split(",") if number}


def _related(recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Name the stages that a stage reads from, and count its time from the first one's start.

    Adaptive execution runs every stage as a job of its own. In later jobs the same shuffle belongs
    to a skipped stage with another number, so only the RDDs tell where it was written.
    """
    writers = {rdd: record["stage"] for record in recorded for rdd in record["rdds"]}
    begin = min((record["start_ms"] for record in recorded), default=0)
    found = []
    for record in recorded:
        parents = {writers[rdd] for rdd in record["reads"] if rdd in writers}
        known = {key: record[key] for key in record if key not in ("stage", "rdds", "reads")}
        known["start_ms"] -= begin
        known["end_ms"] -= begin
        found.append({"stage": record["stage"], "parents": sorted(parents), **known})
    return found


def versions(spark: SparkSession) -> dict[str, str]:
    """What ran, as the session sees it."""
    session: Any = spark
    properties = session._jvm.java.lang.System
    return {
        "spark": spark.version,
        "java": f"{properties.getProperty('java.version')} {properties.getProperty('java.vendor')}",
        "scala": str(session._jvm.scala.util.Properties.versionNumberString()),
        "skewext": str(session._jvm.io.github.skewext.internal.BuildInfo.version()),
    }


def machine() -> dict[str, Any]:
    """What it ran on; nothing that tells whose machine it is."""
    return {
        "cores": _cores(),
        "memory_gb": round(memory_bytes() / 2**30, 1),
        "cpu": _cpu(),
        "system": f"{platform.system()} {platform.machine()}",
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


def _cores() -> int:
    from os import cpu_count

    return cpu_count() or 1


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return text.split("model name")[1].split(":", 1)[1].split("\n")[0].strip()
    except (OSError, IndexError):
        return platform.processor() or "unknown"
