"""A join on a cluster that nobody has: from costs to stages, tasks and time.

Pure functions; `simulate.py` has the figures, `schedule` the cores.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from harness.costs import SCAN, Cost, Sample, fit, scales
from harness.schedule import Driver, Stage, schedule

MB = 2**20


@dataclass(frozen=True)
class Assumptions:
    """What is not measured, or not on this machine."""

    #: Rows of each table.
    rows: int = 3_000_000_000
    #: Of a file that one task reads: spark.sql.files.maxPartitionBytes, and a row group of Parquet.
    split_bytes: int = 128 * MB
    #: spark.sql.adaptive.advisoryPartitionSizeInBytes
    advisory_bytes: int = 64 * MB
    #: spark.sql.adaptive.coalescePartitions.minPartitionSize
    least_bytes: int = MB
    #: Cores of a node, and what its network (or disk, if that is slower) carries.
    node_cores: int = 16
    node_gbit: float = 10.0
    #: Time of the driver for a task, for a stage, and for the query beside its stages.
    task_ms: float = 0.5
    stage_ms: float = 50.0
    query_ms: float = 500.0
    #: Rows of the first table that have one and the same key, which is unique in the others.
    hot_share: float = 0.0
    seed: int = 1

    @property
    def driver(self) -> Driver:
        """As the scheduler wants it."""
        return Driver(task=self.task_ms / 1000, stage=self.stage_ms / 1000)


@dataclass(frozen=True)
class Node:
    """A stage of the variant's plan; what it reads and writes for each row of a table."""

    kind: str
    parents: tuple[int, ...]
    rows_in: float
    bytes_in: float
    rows_out: float
    bytes_out: float
    #: Whether rows of the first table come here.
    first_table: bool


@dataclass(frozen=True)
class Model:
    """A variant: the stages of its plan, and what each kind costs."""

    nodes: tuple[Node, ...]
    costs: dict[str, Cost]


def model(
    runs: Sequence[tuple[int, Sequence[Sample]]], scans_of_others: Sequence[Sample] = ()
) -> Model:
    """Make the model of a variant from its runs: rows of a table, and the stages.

    Costs come from all of them; rows and bytes that a stage reads and writes from the largest. If
    its scans are all of one size, those of others that scan in the same way tell what they cost.
    """
    rows, largest = max(runs, key=lambda run: run[0])
    kinds = dict.fromkeys(sample.kind for sample in largest)
    samples = {kind: [s for _, run in runs for s in run if s.kind == kind] for kind in kinds}
    if SCAN in samples and not scales(samples[SCAN]):
        samples[SCAN] += scans_of_others
    costs = {kind: fit(found) for kind, found in samples.items()}
    nodes: list[Node] = []
    for index, sample in enumerate(largest):
        nodes.append(
            Node(
                kind=sample.kind,
                parents=sample.parents,
                rows_in=sample.rows_in / rows,
                bytes_in=sample.bytes_in / rows,
                rows_out=sample.rows_out / rows,
                bytes_out=sample.bytes_out / rows,
                # The first table is scanned first.
                first_table=index == 0 or any(nodes[p].first_table for p in sample.parents),
            )
        )
    return Model(tuple(nodes), costs)


def pieces(size: float, most: float, least: float, cores: int) -> int:
    """Number of tasks for so many bytes: Spark's rule for files and for shuffled partitions.

    Pieces of `most` bytes; smaller ones, but not below `least`, if cores were idle otherwise.
    """
    return max(1, ceil(size / max(least, min(most, size / cores))))


def tasks_of(node: Node, cores: int, given: Assumptions) -> int:
    """Number of tasks of a stage."""
    size = node.bytes_in * given.rows
    if not node.parents:
        # A task that gets no whole row group of a file gets nothing: no use to cut finer.
        return pieces(size, given.split_bytes, given.split_bytes, cores)
    return pieces(size, given.advisory_bytes, given.least_bytes, cores)


def stage_of(
    node: Node, cost: Cost, tasks: int, given: Assumptions, chance: random.Random
) -> tuple[Stage, float]:
    """The stage with a time for every task, not yet limited by a network; rows of a usual task."""
    hot = given.hot_share * given.rows if node.parents and node.first_table else 0.0
    rows = (node.rows_in * given.rows - hot) / tasks
    usual = cost.ms(rows)
    seconds = [usual * chance.choice(cost.spread) / 1000 for _ in range(tasks)]
    # The hot key may be in any partition.
    seconds[chance.randrange(tasks)] += cost.row_ms * hot / 1000
    return Stage(seconds, node.parents), rows


def simulate(variant: Model, cores: int, given: Assumptions) -> dict[str, Any]:
    """Run a variant on a cluster with so many cores."""
    chance = random.Random(given.seed)
    nodes = ceil(cores / given.node_cores)
    network = nodes * given.node_gbit * 1e9 / 8
    stages: list[Stage] = []
    listed: list[dict[str, Any]] = []
    depth: list[int] = []
    tasks_at: dict[int, int] = {}
    for node in variant.nodes:
        cost = variant.costs[node.kind]
        tasks = tasks_of(node, cores, given)
        stage, rows = stage_of(node, cost, tasks, given, chance)
        # Of what a task reads from a shuffle, its own node has written a part.
        remote = node.bytes_in * given.rows * (1 - 1 / nodes) if node.parents else 0.0
        stages.append(Stage(stage.tasks, stage.parents, remote / network))
        depth.append(1 + max((depth[parent] for parent in node.parents), default=0))
        tasks_at[depth[-1]] = tasks_at.get(depth[-1], 0) + tasks
        listed.append(
            {
                "kind": node.kind,
                "tasks": tasks,
                "task_rows": round(rows),
                "task_rows_measured": [round(size) for size in cost.range],
                "work_s": round(sum(stage.tasks), 1),
                "longest_task_s": round(max(stage.tasks), 3),
                "transfer_s": round(remote / network, 1),
                "bytes_out": round(node.bytes_out * given.rows),
            }
        )
    spans = schedule(stages, cores, given.driver)
    for about, span in zip(listed, spans):
        about.update(start_s=round(span.start, 1), end_s=round(span.end, 1))
    work = sum(sum(stage.tasks) for stage in stages)
    return {
        "seconds": round(max(span.end for span in spans) + given.query_ms / 1000, 3),
        "work_s": round(work, 1),
        "tasks": sum(len(stage.tasks) for stage in stages),
        # Stages that do not wait for each other fill their waves together.
        "waves": sum(ceil(tasks / cores) for tasks in tasks_at.values()),
        "shuffled_bytes": round(sum(node.bytes_out for node in variant.nodes) * given.rows),
        "stages": listed,
    }


def replay(run: Sequence[Sample], costs: dict[str, Cost], cores: int, given: Assumptions) -> float:
    """Seconds of a run that was measured, by the model: its own tasks, with times of the lines."""
    chance = random.Random(given.seed)
    stages = []
    for sample in run:
        cost = costs[sample.kind]
        seconds = [cost.ms(rows) * chance.choice(cost.spread) / 1000 for rows in sample.task_rows]
        stages.append(Stage(seconds, sample.parents))
    spans = schedule(stages, cores, Driver(stage=given.stage_ms / 1000))
    return max(span.end for span in spans) + given.query_ms / 1000
