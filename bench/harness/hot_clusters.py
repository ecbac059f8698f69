"""A full outer join with a hot key on a cluster that nobody has: stages, tasks, time.

What `clusters` does for a join without skew. There are four ways to do it: as stock Spark does, one
task with all rows of the hot key; ours with pieces and one residual; ours with tasks that mark keys
before the join where that pays, so that the residual need not read the hot rows; and ours of tables
without a hot key, which no way can beat.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from harness.clusters import MB, Assumptions, pieces
from harness.hot_costs import OTHERS, HotCosts, HotRun, composition
from harness.schedule import Driver, Stage, makespan, schedule

WAYS = ("stock", "residual", "marking", "even")


@dataclass(frozen=True)
class SkewRules:
    """Spark's settings and ours that decide what is split, and how: see `SkewPlanner`."""

    factor: float = 5.0
    threshold_bytes: int = 256 * MB
    max_slices: int = 256
    max_reread: float = 4.0
    #: What the planner takes a byte to cost that is only compared.
    stream_cost: float = 0.3
    #: How much shorter it must become by marking keys.
    marking_gain: float = 1.25


@dataclass(frozen=True)
class RowBytes:
    """Bytes of a row, in the file and in the shuffle, of the first table and of the second."""

    file: tuple[float, float]
    shuffled: tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """How the rows of a join are divided."""

    #: With the one of the hot key.
    partitions: int
    #: Rows in each of the others.
    whole: float
    #: Of the first table in the hot partition.
    hot: float
    #: Of the second table in each partition.
    others: float
    #: Slices of the hot partition; none if it is not split.
    slices: int
    #: Rows that each slice reads besides its own: its block is divided by what is in the rows.
    dropped: float
    #: Tasks that mark keys before the join; none where that does not pay.
    marks: int


def row_bytes(runs: Sequence[HotRun]) -> RowBytes:
    """From the largest run; the first table is scanned first."""
    scans = max(runs, key=lambda run: run.rows).scans
    file = [scan.bytes_in / scan.rows_in for scan in scans]
    shuffled = [scan.bytes_out / scan.rows_out for scan in scans]
    return RowBytes((file[0], file[1]), (shuffled[0], shuffled[1]))


def layout(size: RowBytes, cores: int, given: Assumptions, rules: SkewRules) -> Layout:
    """Partitions as adaptive execution makes them, slices as `SkewPlanner` does."""
    first, second = float(given.rows), given.rows * OTHERS
    of_first, of_second = size.shuffled
    hot = first * given.hot_share
    total = first * of_first + second * of_second
    target = max(given.least_bytes, min(given.advisory_bytes, total / cores))
    partitions = max(2, ceil((total - hot * of_first) / target))
    others = second / partitions
    cold = (first - hot) / partitions
    own_bytes, other_bytes = (hot + cold) * of_first, others * of_second
    slices, dropped, marks = 0, 0.0, 0
    if own_bytes > max(rules.threshold_bytes, rules.factor * cold * of_first):
        target, fewest = max(given.advisory_bytes, cold * of_first), own_bytes / rules.max_slices
        slices = ceil(own_bytes / max(target, fewest))
        residual = other_bytes + rules.stream_cost * own_bytes
        allowed = rules.max_reread * (own_bytes + other_bytes)
        while slices > 2 and slices * other_bytes + own_bytes + residual > allowed:
            slices = max(2, ceil(slices / 1.25))
        # Each map task has written one block; what is cut finer is read by several.
        blocks = pieces(first * size.file[0], given.split_bytes, given.split_bytes, cores)
        shares = max(1.0, slices / blocks)
        dropped = (hot + cold) / slices * (shares - 1)
        piece = other_bytes + own_bytes / slices
        piece += rules.stream_cost * own_bytes / slices * (shares - 1)
        # Whole blocks, and more of them: to look at keys is less work than to join.
        tasks = min(blocks, ceil(own_bytes / max(target / rules.stream_cost, fewest)))
        mark = rules.stream_cost * (other_bytes + own_bytes / tasks)
        gain = max(piece, residual) / (mark + max(piece, other_bytes))
        marks = tasks if tasks >= 2 and gain >= rules.marking_gain else 0
    return Layout(partitions, cold + others, hot + cold, others, slices, dropped, marks)


def simulate(
    way: str,
    costs: HotCosts,
    size: RowBytes,
    cores: int,
    given: Assumptions,
    rules: SkewRules,
) -> dict[str, Any]:
    """Run the join one way on a cluster with so many cores."""
    chance = random.Random(given.seed)
    if way == "even":
        given = Assumptions(**{**vars(given), "hot_share": 0.0})
    cut = layout(size, cores, given, rules)
    split = way in ("residual", "marking") and cut.slices > 0
    marked = split and cut.marks > 0 and way == "marking"
    nodes = ceil(cores / given.node_cores)
    network = nodes * given.node_gbit * 1e9 / 8

    def varied(milliseconds: float, of: Sequence[float]) -> float:
        return milliseconds * chance.choice(of) / 1000

    spread = costs.whole.spread
    stages: list[Stage] = []
    for rows, each in ((float(given.rows), size.file[0]), (given.rows * OTHERS, size.file[1])):
        tasks = pieces(rows * each, given.split_bytes, given.split_bytes, cores)
        usual = costs.scan.ms(rows / tasks)
        stages.append(Stage([varied(usual, costs.scan.spread) for _ in range(tasks)]))
    slice_rows = cut.hot / max(1, cut.slices)
    marking: list[float] = []
    if marked:
        usual = costs.mark(cut.hot / cut.marks, cut.others)
        marking = [varied(usual, spread) for _ in range(cut.marks)]
        read = cut.hot * size.shuffled[0] + cut.marks * cut.others * size.shuffled[1]
        stages.append(Stage(marking, (0, 1), read * (1 - 1 / nodes) / network))
    whole = [varied(costs.whole_ms(cut.whole), spread) for _ in range(cut.partitions - 1)]
    read = given.rows * (size.shuffled[0] + OTHERS * size.shuffled[1])
    first: list[float] = []
    hot_pieces: list[float] = []
    if way == "even":
        whole.append(varied(costs.whole_ms(cut.whole), spread))
    elif split:
        usual = costs.piece(slice_rows + cut.others, cut.dropped)
        hot_pieces = [varied(usual, spread) for _ in range(cut.slices)]
        residual = costs.whole_ms(cut.others) if marked else costs.heavy_ms(cut.hot, cut.others)
        first = [varied(residual, (1.0,))]
        read += cut.slices * (cut.dropped * size.shuffled[0] + cut.others * size.shuffled[1])
        read += 0 if marked else cut.hot * size.shuffled[0]
    else:
        # The hot key may be in any partition.
        heavy = varied(costs.heavy_ms(cut.hot, cut.others), (1.0,))
        whole.insert(chance.randrange(len(whole) + 1), heavy)
    join = [*first, *hot_pieces, *whole]
    stages.append(Stage(join, tuple(range(len(stages))), read * (1 - 1 / nodes) / network))
    spans = schedule(stages, cores, given.driver)
    return {
        "seconds": round(spans[-1].end + given.query_ms / 1000, 3),
        "join_s": round(spans[-1].end - max(spans[0].end, spans[1].end), 3),
        "tasks": sum(len(stage.tasks) for stage in stages),
        "slices": cut.slices if split else 0,
        "marks": len(marking),
        "work_s": round(sum(sum(stage.tasks) for stage in stages), 1),
        "join_work_s": round(sum(join), 1),
        "longest_task_s": round(max(join), 3),
        "residual_s": round(first[0], 3) if first else None,
        "longest_piece_s": round(max(hot_pieces), 3) if hot_pieces else None,
        "longest_mark_s": round(max(marking), 3) if marking else None,
    }


def residual_limit(found: dict[str, Any]) -> int | None:
    """The number of cores from which on a join that begins with its residual ends with it.

    Before, the other tasks take longer on all cores but one.
    """
    residual: float | None = found["residual_s"]
    if not residual:
        return None
    others: float = found["join_work_s"] - residual
    return max(1, ceil(others / residual) + 1)


def replay(run: HotRun, costs: HotCosts, given: Assumptions) -> float:
    """Seconds of a run that was measured, by the model: its own tasks, with times of the lines."""
    stages = [
        Stage([costs.scan.ms(rows) / 1000 for rows in scan.task_rows], scan.parents)
        for scan in run.scans
    ]
    if run.marks:
        tasks = len(run.marks.task_rows)
        usual = costs.mark(run.marks.rows_in / tasks - run.others, run.others) / 1000
        stages.append(Stage([usual] * tasks, tuple(range(len(stages)))))
    join = [costs.whole_ms(rows) for rows in run.whole.task_rows]
    heavy = [costs.heavy_ms(0.0 if run.marks else run.hot_partition, run.others)]
    # What is split comes first; the hot key's partition of a join that is not is in any place.
    at = 0 if run.pieces else len(join) // 2
    if run.pieces:
        joined, dropped = composition(run, run.pieces)
        heavy += [costs.piece(joined, dropped)] * len(run.pieces.task_rows)
    join[at:at] = heavy
    stages.append(Stage([ms / 1000 for ms in join], tuple(range(len(stages)))))
    return makespan(stages, run.cores, Driver(stage=given.stage_ms / 1000)) + given.query_ms / 1000
