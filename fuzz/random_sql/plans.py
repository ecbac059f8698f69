"""What is read from Spark's plans: our joins, and which of our operators ran."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_skewext._jvm import facade_of
from random_sql.sinks import writes

#: Names of operators for counters, and how plans show them.
OPERATORS = {
    "multi-way join": "MultiFullJoin [",
    "join of two sides": "BuildProbeJoin",
    "as-of join": "AsOfJoin ",
    "split as-of join": "AsOfJoin (skew: ",
    "latest rows": "LatestRows ",
    "split join": "Join (skew: ",
    "exchange by column": ", by column,",
    "selected columns": "ColumnarFilterProject",
    "order of bucket files": "SortedFiles",
    "sliced buckets": "SlicedBuckets",
    "aligned storage partitions": "AlignPartitions",
    "key sketch": "KeySketch",
    "salted keys": "SaltKeys",
    "broadcast join with marks": "MarkedBroadcastJoin",
}

#: Those that stand where stock Spark joins or numbers rows.
JOINS = ("multi-way join", "as-of join", "latest rows", "join of two sides")

_JOIN = re.compile(
    r"MultiFullJoin (?:\(skew: [^\n]*?\) )?\[[^\n]*?\] (?:full outer, )?(\d+) inputs"
)


_TWO_SIDES = re.compile(r"BuildProbeJoin(?:\(skew=true\))? \[[^\n]*?\], \[[^\n]*?\], (\w+)")


def operators_of(plan: str) -> frozenset[str]:
    """Which of our operators there are in the text of a plan, also by the type of the join."""
    types = (f"join of two sides, {name}" for name in _TWO_SIDES.findall(plan))
    return frozenset((*(name for name, text in OPERATORS.items() if text in plan), *types))


def inputs_of(plan: str) -> list[int]:
    """The number of inputs of each of our joins in the text of a physical plan."""
    return [int(inputs) for inputs in _JOIN.findall(plan)]


def joins_of(plan: Any) -> list[int]:
    """The same of a logical plan of the JVM."""
    if "MultiFullJoin" not in plan.toString():
        return []
    children = plan.children()
    inner = [n for i in range(children.size()) for n in joins_of(children.apply(i))]
    return [children.size(), *inner] if plan.nodeName() == "MultiFullJoin" else inner


def text_of(frame: DataFrame) -> str:
    """The physical plan; of an adaptive one only the final plan."""
    frame_of_jvm: Any = frame._jdf
    plan = frame_of_jvm.queryExecution().executedPlan()
    if plan.nodeName() == "AdaptiveSparkPlan":
        plan = plan.executedPlan()
    return str(plan.toString())


class Plans:
    """Plans that a session has run."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        session: Any = spark._jsparkSession
        self._status = session.sharedState().statusStore()
        self._bus = spark.sparkContext._jsc.sc().listenerBus()
        self._reported = _reported(spark)

    def last(self, sink: str) -> int | None:
        """The last query that was run; None if the DataFrame shows what its sink runs."""
        if not writes(sink):
            return None
        return max((int(each.executionId()) for each in self._latest()), default=-1)

    def text(self, frame: DataFrame, after: int | None) -> str:
        """The plan of the DataFrame that was run, or of all queries after that one."""
        if after is None:
            return text_of(frame)
        latest = self._latest()
        return "".join(e.physicalPlanDescription() for e in latest if e.executionId() > after)

    def _latest(self) -> list[Any]:
        """Queries as a listener has seen them, the last few."""
        self._bus.waitUntilEmpty()
        few = 6
        begin = max(0, int(self._status.executionsCount()) - few)
        found = self._status.executionsList(begin, few)
        return [found.apply(i) for i in range(found.size())]

    def failed_rules(self) -> list[str]:
        """What of the extension has failed and was left out, since this was called last."""
        if self._reported is None or self._reported.isEmpty():
            return []
        logged = sorted(str(self._reported.toArray()[i]) for i in range(self._reported.size()))
        # Each failure is logged once, unless it is forgotten.
        self._reported.clear()
        return [text for text in logged if text.endswith(" failed and is left out.")]


def _reported(spark: SparkSession) -> Any:
    """The messages that `Guard` has logged; None without the extension."""
    if facade_of(spark) is None:
        return None
    jvm: Any = spark._jvm
    guard = getattr(getattr(jvm.io.github.skewext.platform, "Guard$"), "MODULE$")
    reported = guard.getClass().getDeclaredField("reported")
    reported.setAccessible(True)
    return reported.get(guard)
