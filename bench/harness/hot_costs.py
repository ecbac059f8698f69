"""What the tasks of a join with a hot key cost, learned from runs of the cases "skew-...".

The tables are those of `data`: half of the first one's rows have the hot key, and the second one
has a quarter as many rows. Where Spark leaves the join whole, one task has all of them. Where we
split it, pieces share them, and, if no tasks have marked keys before, one residual reads them all
once more. Which task is which shows in the number of rows that it read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from harness.costs import LARGE, SCAN, Cost, Sample, fit, samples

#: Of the rows of the first table, in `data`.
HOT_SHARE = 0.5

#: Rows of the second table for one of the first.
OTHERS = 0.25

#: A task that reads nearly all of the hot partition reads this share of it at least; the residual
#: after keys were marked reads no more than what the others have, and this much more.
NEARLY = 0.9
HARDLY = 1.5


@dataclass(frozen=True)
class HotRun:
    """A run that was measured, its join told apart by what the tasks do."""

    case: str
    variant: str
    #: Of the first table.
    rows: int
    partitions: int
    cores: int
    seconds: float
    scans: tuple[Sample, ...]
    #: Milliseconds and rows of the tasks that join a partition as it is.
    whole: Sample
    #: Of the one task that reads all of the hot partition to join it, or of the residual.
    heavy_ms: float
    #: Of the tasks that read slices of it, if it is split.
    pieces: Sample | None
    #: Of those that have marked keys before, so that the residual need not read it.
    marks: Sample | None
    #: Milliseconds of the run that were no stage's.
    beside: float
    gap: float

    @property
    def hot_partition(self) -> float:
        """Rows of the first table in the partition of the hot key."""
        return self.rows * (HOT_SHARE + (1 - HOT_SHARE) / self.partitions)

    @property
    def others(self) -> float:
        """Rows of the second table in a partition."""
        return self.rows * OTHERS / self.partitions


@dataclass(frozen=True)
class HotCosts:
    """What a variant's tasks cost, as lines over their rows."""

    scan: Cost
    #: A partition that is joined as it is.
    whole: Cost
    #: Milliseconds for a row of the hot key: in the task that joins all of them, or in the
    #: residual, which only looks whether the others have its key.
    hot_ms: float
    #: Milliseconds for a row that a piece joins; nothing where the join is not split.
    piece_ms: float | None
    #: What marking was measured to take, times what `mark` would make of the other costs.
    mark_factor: float | None = None

    def whole_ms(self, rows: float) -> float:
        """A task that joins so many rows with keys of all kinds."""
        return self.whole.ms(rows)

    def heavy_ms(self, hot: float, others: float) -> float:
        """The task that reads all rows of the hot partition; `hot` of the first table."""
        return self.whole.ms(others) + self.hot_ms * hot

    def piece(self, joined: float, dropped: float) -> float:
        """A task that joins so many rows of slice and others, and drops rows of other slices."""
        assert self.piece_ms is not None
        return self.whole.fixed_ms + self.piece_ms * joined + self.hot_ms * dropped

    def mark(self, sliced: float, others: float) -> float:
        """A task that looks which keys of the others a slice has, before the join.

        It is made of other costs: its set of keys is taken to cost what joining these rows does,
        and a row of the slice what it costs in the residual. Where it was measured, that counts.
        """
        return (self.whole.ms(others) + self.hot_ms * sliced) * (self.mark_factor or 1.0)


def runs_of(result: dict[str, Any], variant: str) -> list[HotRun]:
    """The runs of a variant that tell: two tables, full outer, the hot key on the left."""
    found = []
    for point in result["points"]:
        wanted = ("hot", 2, "full", False, False)
        asked = ("kind", "tables", "how", "swapped", "one_mapper")
        facts = point["variants"].get(variant, {})
        if tuple(point.get(key) for key in asked) == wanted and facts.get("stages"):
            found.append(_run(result, point, variant, facts))
    return found


def _run(
    result: dict[str, Any], point: dict[str, Any], variant: str, facts: dict[str, Any]
) -> HotRun:
    stages = samples(facts["stages"], 2)
    where = f"{result['case']}, {variant}"
    *before, join = [stage for stage in stages if stage.parents]
    if len(before) > 1:
        raise ValueError(f"{where}: {len(before) + 1} stages read a shuffle")
    rows, partitions = point["rows"], point["partitions"]
    others = rows * OTHERS / partitions
    # All rows of the hot key, and the others in their partition.
    hot = rows * (HOT_SHARE + (1 - HOT_SHARE) / partitions) + others
    tasks = sorted(zip(join.task_rows, join.task_ms), reverse=True)
    # What runs before may only look where rows begin in blocks that tasks share.
    marked = bool(before) and tasks[0][0] < NEARLY * hot
    if marked:
        heavy = tasks.pop()
        if heavy[0] > HARDLY * others:
            raise ValueError(f"{where}: keys were marked, but no residual is without hot rows")
    else:
        heavy = tasks.pop(0)
        if heavy[0] < NEARLY * hot or (tasks and tasks[0][0] >= NEARLY * hot):
            raise ValueError(f"{where}: not one task has all rows of the hot key")
    # As many partitions are joined as they are as there are others.
    sliced = len(tasks) - (partitions - 1)
    ends = {stage["stage"]: stage["end_ms"] for stage in facts["stages"]}
    gaps = [
        stage["start_ms"] - max(ends[parent] for parent in stage["parents"])
        for stage in facts["stages"]
        if stage["parents"]
    ]
    return HotRun(
        case=result["case"],
        variant=variant,
        rows=rows,
        partitions=partitions,
        cores=result["settings"]["cores"],
        seconds=facts["min"],
        scans=tuple(stage for stage in stages if not stage.parents),
        whole=_sample("whole", tasks[sliced:]),
        heavy_ms=heavy[1],
        pieces=_sample("piece", tasks[:sliced]) if sliced else None,
        marks=before[0] if marked else None,
        beside=max(0.0, facts["min"] * 1000 - max(ends.values())),
        gap=gaps[0],
    )


def _sample(kind: str, tasks: Sequence[tuple[float, float]]) -> Sample:
    rows, times = zip(*tasks)
    return Sample(kind, (), round(sum(rows)), 0, 0, 0, tuple(times), tuple(rows))


def learn(runs: Sequence[HotRun]) -> HotCosts:
    """The costs of a variant from its runs; some of them without marking."""
    scan = fit([scan for run in runs for scan in run.scans if scan.kind == SCAN])
    whole = fit([run.whole for run in runs])
    # In small runs, what is the same for every task is more than what is sought.
    largest = max(run.rows for run in runs)
    large = [run for run in runs if run.rows >= LARGE * largest]
    plain = [run for run in large if not run.marks]
    if not plain:
        raise ValueError("in all large runs, keys were marked: what one residual costs is not seen")
    hot = median((run.heavy_ms - whole.ms(run.others)) / run.hot_partition for run in plain)
    hot_ms = max(0.0, hot)
    pieces = [_piece_ms(run, run.pieces, whole, hot_ms) for run in large if run.pieces]
    costs = HotCosts(scan, whole, hot_ms, max(0.0, median(pieces)) if pieces else None)
    factors = [
        run.marks.ms / costs.mark(run.marks.rows - run.others, run.others)
        for run in large
        if run.marks
    ]
    return replace(costs, mark_factor=median(factors)) if factors else costs


def composition(run: HotRun, pieces: Sample) -> tuple[float, float]:
    """Rows that a piece joins, and rows of other slices that it reads and drops."""
    joined = run.hot_partition / len(pieces.task_rows) + run.others
    return joined, max(0.0, pieces.rows_in / len(pieces.task_rows) - joined)


def _piece_ms(run: HotRun, pieces: Sample, whole: Cost, hot_ms: float) -> float:
    joined, dropped = composition(run, pieces)
    return (pieces.ms - whole.fixed_ms - hot_ms * dropped) / joined
