"""Joins of Spark's that take less time with the extension: estimates from a report's figures."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_skewext._jar import jar_path
from pyspark_skewext._jvm import EXTENSION, EXTENSIONS
from pyspark_skewext.render.values import bytes_shown, join_shown, seconds

if TYPE_CHECKING:
    from pyspark_skewext.results.query import JoinWork, QueryFigures, StageWork

# Microseconds of a core for a row. Only ratios of them count: they divide the time of a stage.
# Two tables of 2,000,000 rows on two cores (n2 in docs/performance.md, beside DuckDB) take 0.43 s
# for the scan, 1.54 s with the shuffle, and 2.46 s with the sort-merge join.
_SCAN = 0.21
# We assign three fifths of the time of a shuffle to the tasks that write it.
_WRITE, _READ = 0.33, 0.22
_SORT_AND_MERGE = 0.46
# The same tables take 1.11 s with the extension: 0.34 of the time without the scan. Chains of four
# and eight full joins take 0.17 and 0.12 of it. So does the estimate: what a chain shuffles once
# more is gone.
_KEPT = 0.34
# A hint for a shuffled hash join takes 0.84 of the time of Spark's sort-merge joins of TPC-H.
_KEPT_OF_HASH = _KEPT / 0.84
# A nested loop tests 1,000,000,000 pairs of rows in 3 s on two cores (docs/range-joins.md).
_PAIR = 0.006
# The extension takes as long for a row as a nested loop for 33 pairs, and leaves joins of fewer
# than 10,000,000 pairs to Spark (docs/or-joins.md).
_PROBE, _FEWEST_PAIRS = 33 * _PAIR, 10_000_000
# Rows into an aggregate, out of a join, and into files: guesses, which we have not measured.
_AGGREGATE, _RETURN, _SAVE = 0.2, 0.05, 1.0

# Seconds below which a change is not worth it, as for uneven tasks.
_WORTH = 1.0
_MOST = 3
_ENABLED = "spark.skewext.enabled"


@dataclass(frozen=True)
class JoinGain:
    """An estimate for a join.

    The join, with its sorts and shuffles, took `task_seconds` of all tasks together. The extension
    saves about `saved_seconds` of them. Its stage ends about `earlier_seconds` earlier because a
    skewed partition is split.
    """

    join: JoinWork
    task_seconds: float
    saved_seconds: float
    earlier_seconds: float

    @property
    def _rank(self) -> float:
        return max(self.saved_seconds, self.earlier_seconds)


def gains_of(report: QueryFigures) -> list[JoinGain]:
    """List the joins that are worth a change, the largest gain first."""
    settings = report.settings
    if settings.skewext_loaded and _ENABLED not in settings.switched_off:
        # It had its reasons to leave them to Spark.
        return []
    times = _Times(report)
    found = [gain for join in report.join_work if (gain := _gain(report, times, join)) is not None]
    worth = [gain for gain in found if gain._rank >= _WORTH]
    return sorted(worth, key=lambda gain: gain._rank, reverse=True)


class _Times:
    """Divides the time of stages among their operators."""

    def __init__(self, report: QueryFigures) -> None:
        self._stages = {work.stage: work for work in report.stage_work}
        self._joins = report.join_work
        self._reads = Counter(each.stage for join in self._joins for each in join.inputs)

    def in_stage(self, stage: int, micros: float) -> float:
        """Seconds of the stage for this work; none if other operators may take any time."""
        work = self._stages.get(stage)
        if work is None or not work.is_known or not micros:
            return 0.0
        return work.run_seconds * micros / max(micros, self._micros(work))

    def of_write(self, stage: int | None, rows: int) -> float:
        """Seconds for writing an input, or the part of it if several joins read it."""
        return 0.0 if stage is None else self.in_stage(stage, rows * _WRITE) / self._reads[stage]

    def _micros(self, work: StageWork) -> float:
        joins = sum(_own_micros(join) for join in self._joins if join.stage == work.stage)
        return (
            joins
            + work.scanned_rows * _SCAN
            + work.read_rows * _READ
            + work.written_rows * _WRITE
            + work.aggregated_rows * _AGGREGATE
            + work.joined_rows * _RETURN
            + work.output_rows * _SAVE
        )


def _own_micros(join: JoinWork) -> float:
    rows = [each.rows or 0 for each in join.inputs]
    return math.prod(rows) * _PAIR if join.tests_pairs else sum(rows) * _SORT_AND_MERGE


def _gain(report: QueryFigures, times: _Times, join: JoinWork) -> JoinGain | None:
    if any(each.rows is None for each in join.inputs):
        return None
    return _of_pairs(times, join) if join.tests_pairs else _of_shuffles(report, times, join)


def _of_pairs(times: _Times, join: JoinWork) -> JoinGain | None:
    rows = [each.rows or 0 for each in join.inputs]
    pairs = math.prod(rows)
    if join.condition is None or pairs < _FEWEST_PAIRS:
        return None
    taken = times.in_stage(join.stage, pairs * _PAIR)
    saved = taken * max(0.0, 1 - sum(rows) * _PROBE / (pairs * _PAIR))
    return JoinGain(join, taken, saved, 0.0)


def _of_shuffles(report: QueryFigures, times: _Times, join: JoinWork) -> JoinGain:
    kept = _KEPT if join.operator == "SortMergeJoin" else _KEPT_OF_HASH
    taken = saved = 0.0
    for each in join.inputs:
        rows = each.rows or 0
        own = rows * (_SORT_AND_MERGE + (_READ if each.shuffled else 0.0))
        time = times.in_stage(join.stage, own) + times.of_write(each.stage, rows)
        taken += time
        saved += time if each.chained else time * (1 - kept)
    return JoinGain(join, taken, saved, _earlier(report, join))


def _earlier(report: QueryFigures, join: JoinWork) -> float:
    """A split task takes about as long as the median now (docs/performance.md, skewed joins)."""
    stage = next((each for each in report.stages if each.stage == join.stage), None)
    if (
        stage is None
        or not stage.is_slow
        or not any(each.shuffled for each in join.inputs)
        or any(each.split is not None for each in stage.joins)
        or stage.is_below_thresholds
    ):
        return 0.0
    return stage.slowest.seconds - stage.median.seconds


def gains_shown(report: QueryFigures, gains: list[JoinGain]) -> list[str]:
    """Write a sentence for each of the largest gains."""
    works = {work.stage: work for work in report.stage_work}
    return [_shown(report, works, gain) for gain in gains[:_MOST]]


def _shown(report: QueryFigures, works: dict[int, StageWork], gain: JoinGain) -> str:
    join = gain.join
    said = (
        f"{join_shown(join)} (stage {join.stage}): about {seconds(gain.saved_seconds)} of its "
        f"{seconds(gain.task_seconds)} of task time. {_why(works, join)}"
    )
    if gain.earlier_seconds:
        said += (
            " Its skewed partition is divided among several tasks, so the stage ends about "
            f"{seconds(gain.earlier_seconds)} earlier (docs/skew.md)."
        )
    return said


def _why(works: dict[int, StageWork], join: JoinWork) -> str:
    rows = [each.rows or 0 for each in join.inputs]
    if join.tests_pairs:
        instead = (
            "the parts of its OR become joins on equal keys (docs/or-joins.md)."
            if join.condition == "or"
            else "a range join tests only pairs whose ranges touch (docs/range-joins.md)."
        )
        return f"Spark tests {math.prod(rows):,} pairs of rows; {instead}"
    counted = " and ".join(f"{each:,}" for each in rows)
    written = [works[each.stage] for each in join.inputs if each.stage in works]
    size = f" ({bytes_shown(sum(each.written_bytes for each in written))})" if written else ""
    spilled = works[join.stage].disk_spilled if join.stage in works else 0
    more = f", and spills {bytes_shown(spilled)}" if spilled else ""
    does = "shuffles and sorts" if join.operator == "SortMergeJoin" else "shuffles"
    said = f"Spark {does} {counted} rows{size}{more}; "
    if any(each.chained for each in join.inputs):
        return f"{said}one operator for the chain shuffles each table once (docs/rewrite.md)."
    return f"{said}BuildProbeJoin shuffles columns and sorts nothing (docs/joins.md)."


def command_of(report: QueryFigures) -> str:
    """Write what adds the extension: options of spark-submit, or a setting."""
    settings = report.settings
    if settings.skewext_loaded:
        return f"--conf {_ENABLED}=true"
    try:
        jar = shlex.quote(jar_path(report.spark_version))
    except RuntimeError:
        jar = f"<jar of skewext for Spark {report.spark_version or 'your version'}>"
    names = [name.strip() for name in settings.extensions.split(",") if name.strip()]
    extensions = ",".join([*names, EXTENSION])
    return f"--jars {jar} --conf {EXTENSIONS}={extensions}"
