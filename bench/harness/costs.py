"""What a stage costs, learned from the stages that were measured.

Stages of a variant are of one kind if they join equally many tables; its scans are a kind too. The
time of a task is taken to be a fixed part and a part for every row that it reads, which two or more
scales tell apart. How tasks of equal size differ is kept as it was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

#: Between the smallest and the largest task, for a line to mean something.
LEAST_RANGE = 1.5

#: Share of the largest task's rows from which on tasks tell how tasks differ. Small ones differ
#: by milliseconds that do not grow with the task.
LARGE = 0.25

SCAN = "scan"


@dataclass(frozen=True)
class Sample:
    """A stage of a run that was measured."""

    kind: str
    #: Positions of the stages that it reads from, among the samples of the run.
    parents: tuple[int, ...]
    rows_in: int
    bytes_in: int
    rows_out: int
    bytes_out: int
    task_ms: tuple[float, ...]
    task_rows: tuple[int, ...]

    @property
    def rows(self) -> float:
        """Rows of its median task."""
        return median(self.task_rows)

    @property
    def ms(self) -> float:
        """Time of its median task."""
        return median(self.task_ms)


@dataclass(frozen=True)
class Cost:
    """Milliseconds of the median task as a line over its rows, and how tasks lie around it."""

    fixed_ms: float
    row_ms: float
    #: Rows of the smallest and the largest task that the line was made from.
    range: tuple[float, float]
    #: Medians of stages divided by the line, the lowest and the highest.
    fit: tuple[float, float]
    #: Times of large tasks divided by the median of their stage, at equal size; in order.
    spread: tuple[float, ...]

    def ms(self, rows: float) -> float:
        """Time of a median task."""
        return self.fixed_ms + self.row_ms * rows

    def as_json(self) -> dict[str, Any]:
        """For people."""
        cuts = quantiles(self.spread, n=20, method="inclusive")
        return {
            "fixed_ms": round(self.fixed_ms, 2),
            "row_us": round(self.row_ms * 1000, 4),
            "task_rows_measured": [round(size) for size in self.range],
            "measured_over_line": [round(error, 3) for error in self.fit],
            "tasks": len(self.spread),
            "spread": {
                "p5": round(cuts[0], 3),
                "p95": round(cuts[-1], 3),
                "max": round(self.spread[-1], 3),
            },
        }


def check_machines(used: Sequence[dict[str, Any]]) -> None:
    """A line through figures of two machines, or of two numbers of cores, would be nobody's."""
    where = {(result["machine"]["cpu"], result["settings"]["cores"]) for result in used}
    if len(where) > 1:
        listed = "; ".join(f"{cores} cores of {cpu}" for cpu, cores in sorted(where))
        raise ValueError(f"results of one machine are wanted, not of several: {listed}")


def samples(stages: Sequence[dict[str, Any]], tables: int) -> list[Sample]:
    """Read the stages of a run, as `facts` recorded them, in the order of their numbers."""
    ordered = sorted(stages, key=lambda stage: int(stage["stage"]))
    position = {stage["stage"]: index for index, stage in enumerate(ordered)}
    found: list[Sample] = []
    scans: list[frozenset[int]] = []
    # A single one has all the tables in it: a union.
    single = sum(not stage["parents"] for stage in ordered) == 1
    for index, stage in enumerate(ordered):
        parents = tuple(position[parent] for parent in stage["parents"])
        if any(parent >= index for parent in parents):
            raise ValueError(f"stage {stage['stage']} has a smaller number than one it reads from")
        below = frozenset({index}) if not parents else frozenset()
        scans.append(below.union(*(scans[parent] for parent in parents)))
        joined = tables if single else len(scans[index])
        of_single = f"scan of {tables}" if single else SCAN
        found.append(
            Sample(
                kind=f"join of {joined}" if parents else of_single,
                parents=parents,
                rows_in=stage["rows_in"],
                bytes_in=stage["bytes_in"],
                rows_out=stage["rows_out"],
                bytes_out=stage["bytes_out"],
                task_ms=tuple(stage["task_ms"]),
                task_rows=tuple(stage["task_rows"]),
            )
        )
    return found


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Fit `y = a + b * x` with the least relative squares; neither a nor b is negative.

    Relative, since a millisecond is much for a small task and nothing for a large one.
    """
    weights = [1 / (y * y) for _, y in points]
    w = sum(weights)
    wx = sum(v * x for v, (x, _) in zip(weights, points))
    wy = sum(v * y for v, (_, y) in zip(weights, points))
    wxx = sum(v * x * x for v, (x, _) in zip(weights, points))
    wxy = sum(v * x * y for v, (x, y) in zip(weights, points))
    determinant = w * wxx - wx * wx
    b = (w * wxy - wx * wy) / determinant
    a = (wy - b * wx) / w
    if a < 0:
        return 0.0, wxy / wxx
    return (a, b) if b >= 0 else (wy / w, 0.0)


def scales(found: Sequence[Sample]) -> bool:
    """Whether the samples are of different enough sizes for a line."""
    sizes = [sample.rows for sample in found if _usable(sample)]
    return bool(sizes) and max(sizes) >= LEAST_RANGE * min(sizes)


def _usable(sample: Sample) -> bool:
    return sample.rows > 0 and sample.ms > 0


def fit(found: Sequence[Sample]) -> Cost:
    """Learn the cost of a kind from its samples."""
    usable = [sample for sample in found if _usable(sample)]
    sizes = [sample.rows for sample in usable]
    if not scales(usable):
        kind = found[0].kind if found else "stage"
        raise ValueError(f"{kind}: tasks of one size only; measure more scales or partitions")
    fixed, per_row = line([(sample.rows, sample.ms) for sample in usable])
    errors = [sample.ms / (fixed + per_row * sample.rows) for sample in usable]
    factors = [
        ms / (sample.ms * (fixed + per_row * rows) / (fixed + per_row * sample.rows))
        for sample in usable
        if sample.rows >= LARGE * max(sizes)
        for ms, rows in zip(sample.task_ms, sample.task_rows)
        # Tasks without rows say nothing about those with rows.
        if rows > 0
    ]
    return Cost(
        fixed_ms=fixed,
        row_ms=per_row,
        range=(min(sizes), max(sizes)),
        fit=(min(errors), max(errors)),
        spread=tuple(sorted(factors)),
    )
