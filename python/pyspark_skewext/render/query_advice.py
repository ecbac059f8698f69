"""Advice on the slowest tasks of a query: sentences from the figures of a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark_skewext.render.values import (
    bytes_shown,
    counted,
    join_shown,
    joins_shown,
    seconds,
    times,
)

if TYPE_CHECKING:
    from pyspark_skewext.results.query import ExecutedJoin, JoinStage, QueryFigures, Settings

# Its input explains a slow task above this multiple of the median input.
_READ_MORE = 2.0
# A larger share of garbage collection means that memory is short.
_GARBAGE = 0.2
# Pieces of a split become smaller by this factor, unless others are larger.
_PIECES = 8
_THRESHOLD = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
_FACTOR = "spark.sql.adaptive.skewJoin.skewedPartitionFactor"
_ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_PARTITIONS = "spark.sql.shuffle.partitions"


def advise(report: QueryFigures, has_gains: bool) -> list[str]:
    """Write the advice, first for the stage with the largest possible gain.

    With gains there is something to do, also if the tasks are even.
    """
    if not report.stages:
        return [
            "No stage that has run has a join."
            if report.join_count
            else "The query has no join: this report is about joins."
        ]
    slow = sorted((each for each in report.stages if each.is_slow), key=_excess, reverse=True)
    said = [_slow(report, stage) for stage in slow]
    said += [_spilled(report, stage) for stage in report.stages if stage.total.disk_spilled]
    said += [
        f"{counted(stage.failed_tasks, 'task')} of stage {stage.stage} failed: Spark's UI has the "
        f"reason at the stage."
        for stage in report.stages
        if stage.failed_tasks
    ]
    if said:
        return said
    worst = max(report.stages, key=_excess)
    compared = "" if worst.times is None else f", {times(worst.times)} the median"
    end = "" if has_gains else ": there is nothing to do"
    return [
        f"The tasks are {worst.verdict or 'even'}{end} (the slowest task took "
        f"{seconds(worst.slowest.seconds)}{compared})."
    ]


def _excess(stage: JoinStage) -> float:
    return stage.slowest.seconds - stage.median.seconds


def _ratio(one: float, other: float) -> str:
    return f"{times(one / other)} the median" if other else "where most others have nothing to do"


def _slow(report: QueryFigures, stage: JoinStage) -> str:
    slowest, median = stage.slowest, stage.median
    said = (
        f"Stage {stage.stage} ({joins_shown(stage)}): the task of partition "
        f"{stage.partition} took {seconds(slowest.seconds)}, "
        f"{_ratio(slowest.seconds, median.seconds)}. "
    )
    if slowest.gc_seconds > _GARBAGE * slowest.seconds:
        said += (
            f"{seconds(slowest.gc_seconds)} of that went into collecting garbage: its executor has "
            f"too little memory, or too many tasks side by side. "
        )
    if slowest.read_bytes > _READ_MORE * median.read_bytes:
        ratio = _ratio(slowest.read_bytes, median.read_bytes)
        return f"{said}It read {bytes_shown(slowest.read_bytes)}, {ratio}. {_larger(report, stage)}"
    if slowest.read_rows > _READ_MORE * median.read_rows:
        ratio = _ratio(slowest.read_rows, median.read_rows)
        return (
            f"{said}It read {slowest.read_rows:,.0f} rows, {ratio}, in about as many bytes: equal "
            f"keys that are compressed. {_larger(report, stage)}"
        )
    return (
        f"{said}It read no more than others. If its machine ({stage.host}) is not slower, its keys "
        f"have many rows on both sides, and most rows come out of it: "
        f"skewext.skew_report(df, {_on(stage)}, other) tells which keys, and how many rows a join "
        f"gives for them. "
        f"{_divided(report, by_output=True) if _joins_partitions(stage) else _repartition()}"
    )


def _joins_partitions(stage: JoinStage) -> bool:
    return any(join.joins_partitions for join in stage.joins)


def _repartition() -> str:
    return "Its join has no partitions by key: repartition its larger side before the join."


def _divided(report: QueryFigures, by_output: bool = False) -> str:
    """How the extension splits the partition, and what switches that on."""
    steps = [f'spark.conf.set("{key}", True)' for key in report.settings.switched_off]
    if not report.settings.skewext_loaded:
        steps.insert(0, "start the session with skewext.configure(builder)")
    said = "The extension divides such partitions among several tasks"
    if by_output:
        said += ", those of Spark's own joins with spark.skewext.skew.outputSkew.mode=all"
    return f"{said}: {', '.join(steps)}." if steps else f"{said}."


def _on(stage: JoinStage) -> str:
    """The key as an argument of a call."""
    keys = next((join.keys for join in stage.joins if join.keys), None)
    return "on" if keys is None else repr(keys[0]) if len(keys) == 1 else repr(list(keys))


def _larger(report: QueryFigures, stage: JoinStage) -> str:
    """Advice on a partition that is larger than others."""
    settings = report.settings
    if not stage.slowest.shuffle_bytes:
        return (
            "It read files or cached data, so its partition is as they are: write smaller files, "
            "or repartition before the join."
        )
    split = next((join for join in stage.joins if join.split is not None), None)
    if split is not None:
        return f"Skewed partitions of {join_shown(split)} were split ({split.split}). " + _further(
            settings, stage, split
        )
    if not _joins_partitions(stage):
        return _repartition()
    which = f"Which key it is tells skewext.skew_report(df, {_on(stage)}). "
    why = next((join for join in stage.joins if join.not_split is not None), None)
    if why is not None:
        what = why.advice or "docs/explain.md says what to do about that."
        return which + f"It was not split: {why.not_split}. {what} Else {_by_technique(stage)}"
    lower = limits_of_splits(settings, stage)
    if not settings.skewext_splits:
        return which + _divided(report) + (f" {lower}" if lower else "")
    if lower:
        return which + lower
    return which + (
        f"Why it was not split tells skewext.explain(df), when df has been run; or "
        f"{_by_technique(stage)}"
    )


def _further(settings: Settings, stage: JoinStage, split: ExecutedJoin) -> str:
    """What makes the tasks of a split shorter."""
    if split.limit is not None:
        return f"Its longest task is not shorter: {split.limit}. {split.advice or ''}".rstrip()
    smaller = max(settings.advisory_bytes / _PIECES, stage.median.shuffle_bytes)
    if smaller >= settings.advisory_bytes:
        return "Its pieces are as large as other partitions: there is nothing to do."
    return f"Smaller pieces take less time each: {_set(_ADVISORY, _size(smaller))}."


def limits_of_splits(settings: Settings, stage: JoinStage) -> str:
    """Write the settings that keep adaptive execution from a split of the largest partition."""
    # Of two inputs, one has at least half of it.
    size = stage.slowest.shuffle_bytes / 2
    lower = size / 2
    median = stage.median.shuffle_bytes
    said: list[str] = []
    steps: list[str] = []
    if size <= settings.skewed_bytes:
        said.append(f"from {bytes_shown(settings.skewed_bytes)} on")
        steps.append(_set(_THRESHOLD, _size(lower)))
    if size <= settings.skewed_factor * median:
        said.append(f"from {settings.skewed_factor:g} times the median on")
        steps.append(_set(_FACTOR, str(max(1, int(lower / median)))))
    if not steps:
        return ""
    if lower < settings.advisory_bytes:
        said.append(f"into pieces of {bytes_shown(settings.advisory_bytes)}")
        steps.append(_set(_ADVISORY, _size(lower)))
    return f"Adaptive execution splits {', '.join(said)}: {', '.join(steps)}."


def _by_technique(stage: JoinStage) -> str:
    return f'join with skewext.skew_join(left, right, {_on(stage)}, how, technique="auto").'


def _set(key: str, value: str) -> str:
    return f'spark.conf.set("{key}", "{value}")'


def _size(size: float) -> str:
    """A size as the value of a setting."""
    megabytes = int(size / 1024**2)
    return f"{megabytes}MB" if megabytes else f"{max(1, int(size / 1024))}KB"


def _spilled(report: QueryFigures, stage: JoinStage) -> str:
    settings = report.settings
    said = (
        f"Stage {stage.stage} spilled {bytes_shown(stage.total.memory_spilled)}, "
        f"{bytes_shown(stage.total.disk_spilled)} on disk"
    )
    share = stage.slowest.disk_spilled / stage.total.disk_spilled
    if stage.is_slow and share > 0.5:
        return f"{said}, {share:.0%} of it the slowest task: what makes that faster, ends this."
    if stage.tasks < settings.shuffle_partitions:
        return (
            f"{said}. With smaller partitions less is spilled: "
            f"{_set(_ADVISORY, _size(settings.advisory_bytes / 2))}; or give executors more memory."
        )
    more = 2 ** math.ceil(math.log2(2 * settings.shuffle_partitions))
    return (
        f'{said}. With more partitions less is spilled: spark.conf.set("{_PARTITIONS}", {more}); '
        f"or give executors more memory."
    )
