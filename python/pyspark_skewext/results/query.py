"""What ``query_report`` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class TaskFigures(NamedTuple):
    """What a task did, or the median of what tasks did, or the sum.

    Attributes
    ----------
    seconds, gc_seconds
        How long it ran on its executor, and how much of that its JVM collected garbage.
    shuffle_bytes, shuffle_rows
        What it read of shuffles.
    input_bytes, input_rows
        What it read of files and of cached data.
    memory_spilled, disk_spilled
        The bytes that it moved to disk, as large as they were in memory and as they are on disk.
    """

    seconds: float
    gc_seconds: float
    shuffle_bytes: float
    shuffle_rows: float
    input_bytes: float
    input_rows: float
    memory_spilled: float
    disk_spilled: float

    @property
    def read_bytes(self) -> float:
        """What it read of all kinds."""
        return self.shuffle_bytes + self.input_bytes

    @property
    def read_rows(self) -> float:
        """The rows of that."""
        return self.shuffle_rows + self.input_rows

    @classmethod
    def of(cls, figures: dict[str, Any]) -> TaskFigures:
        """Read what the JVM has found."""
        return cls(
            seconds=figures["run_ms"] / 1000,
            gc_seconds=figures["gc_ms"] / 1000,
            **{name: figures[name] for name in cls._fields[2:]},
        )


@dataclass(frozen=True)
class RanJoin:
    """A join of the plan that was run.

    Attributes
    ----------
    operator
        The operator that did it.
    text
        How the plan shows it.
    keys
        The names of its key columns on the left; None if they are no plain columns.
    split
        Into what its skewed partitions were split; None if they were not.
    not_split
        Why the extension did not split it, though it is skewed.
    metrics
        What Spark's UI shows at it: numbers, and what has a unit as text.
    """

    operator: str
    text: str
    keys: tuple[str, ...] | None
    split: str | None
    not_split: str | None
    metrics: dict[str, int | str]

    @property
    def output_rows(self) -> int | None:
        """How many rows came out, if it says so."""
        rows = self.metrics.get("number of output rows")
        return rows if isinstance(rows, int) else None

    @classmethod
    def of(cls, figures: dict[str, Any]) -> RanJoin:
        """Read what the JVM has found."""
        keys = figures["keys"]
        return cls(**{**figures, "keys": None if keys is None else tuple(keys)})


@dataclass(frozen=True)
class JoinStage:
    """The tasks of a stage that ran joins.

    Attributes
    ----------
    stage
        Its number in Spark's UI.
    prepares
        Whether it ran before a split join, to find what the tasks of the join have to know.
    joins
        What it ran, those above first.
    tasks
        How many tasks it had.
    failed_tasks
        How many failed, and were run again.
    partition, host
        Which partition the slowest task had, and where it ran.
    slowest, median, total
        The figures of the slowest task, the median of each figure, and its sum. Of the tasks that
        ended well.
    task_seconds
        How long the tasks ran, the slowest first. Fewer than `tasks` if Spark has not kept all.
    """

    stage: int
    prepares: bool
    joins: tuple[RanJoin, ...]
    tasks: int
    failed_tasks: int
    partition: int
    host: str
    slowest: TaskFigures
    median: TaskFigures
    total: TaskFigures
    task_seconds: tuple[float, ...]

    @property
    def times(self) -> float | None:
        """How many times the median the slowest task took; None if most took no time."""
        return self.slowest.seconds / self.median.seconds if self.median.seconds else None

    @classmethod
    def of(cls, figures: dict[str, Any]) -> JoinStage:
        """Read what the JVM has found."""
        return cls(
            stage=figures["stage"],
            prepares=figures["prepares"],
            joins=tuple(map(RanJoin.of, figures["joins"])),
            tasks=figures["tasks"],
            failed_tasks=figures["failed_tasks"],
            partition=figures["slowest"]["partition"],
            host=figures["slowest"]["host"],
            slowest=TaskFigures.of(figures["slowest"]),
            median=TaskFigures.of(figures["median"]),
            total=TaskFigures.of(figures["total"]),
            task_seconds=tuple(each / 1000 for each in figures["run_ms"]),
        )


class FiredRule(NamedTuple):
    """A rule of the extension that the plan shows, and what it did."""

    rule: str
    text: str


class QuerySummary(NamedTuple):
    """A query that has come to its end: its number, what it is, how long it took, its joins."""

    query: int
    description: str
    seconds: float
    joins: int


@dataclass(frozen=True)
class Settings:
    """What the query was run with."""

    skewext_loaded: bool
    switched_off: list[str]
    shuffle_partitions: int
    skewed_bytes: int
    skewed_factor: float
    advisory_bytes: int

    @property
    def skewext_splits(self) -> bool:
        """Whether the extension splits skewed joins."""
        return self.skewext_loaded and not self.switched_off


@dataclass(frozen=True)
class QueryFigures:
    """How the tasks of a query were in its joins; ``QueryReport`` says what each is."""

    query: int
    description: str
    seconds: float
    failure: str | None
    join_count: int
    stages: list[JoinStage]
    other_seconds: float
    rules: list[FiredRule]
    settings: Settings
    queries: list[QuerySummary]

    @classmethod
    def of(cls, figures: dict[str, Any]) -> QueryFigures:
        """Put together what the JVM has found."""
        return cls(
            query=figures["query"],
            description=figures["description"],
            seconds=figures["milliseconds"] / 1000,
            failure=figures["failure"],
            join_count=figures["joins"],
            stages=list(map(JoinStage.of, figures["stages"])),
            other_seconds=figures["other_run_ms"] / 1000,
            rules=[FiredRule(**each) for each in figures["rules"]],
            settings=Settings(**figures["settings"]),
            queries=[
                QuerySummary(
                    each["query"], each["description"], each["milliseconds"] / 1000, each["joins"]
                )
                for each in figures["queries"]
            ],
        )
