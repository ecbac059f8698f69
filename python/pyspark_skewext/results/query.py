"""The figures of ``query_report``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from pyspark_skewext.results import filled

F = TypeVar("F", bound="QueryFigures")


class TaskFigures(NamedTuple):
    """The figures of a task, or their median or their sum over tasks.

    A spill counts bytes twice: as in memory (`memory_spilled`) and as on disk (`disk_spilled`).
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
        """All bytes that it read."""
        return self.shuffle_bytes + self.input_bytes

    @property
    def read_rows(self) -> float:
        """All rows that it read."""
        return self.shuffle_rows + self.input_rows

    @classmethod
    def of(cls, figures: dict[str, Any]) -> TaskFigures:
        """Read the figures of the JVM."""
        seconds, gc_seconds = figures["run_ms"] / 1000, figures["gc_ms"] / 1000
        return filled(cls, figures, seconds=seconds, gc_seconds=gc_seconds)


@dataclass(frozen=True)
class ExecutedJoin:
    """A join of the executed plan.

    `keys` are the key columns on the left; None for expressions. All sides of a join that
    `joins_partitions` are partitioned by its keys, and not broadcast. `split` describes the split
    of skewed partitions, and `not_split` why there was none. `limit` is why a split has no shorter
    tasks, and `advice` what to do about either. `metrics` are those of Spark's UI.
    """

    operator: str
    text: str
    keys: tuple[str, ...] | None
    joins_partitions: bool
    split: str | None
    not_split: str | None
    metrics: dict[str, int | str]
    limit: str | None = None
    advice: str | None = None

    @property
    def output_rows(self) -> int | None:
        """The number of output rows, if the operator counts them."""
        rows = self.metrics.get("number of output rows")
        return rows if isinstance(rows, int) else None


@dataclass(frozen=True)
class JoinStage:
    """The tasks of a stage with joins.

    A stage that `prepares` a split join ran before it. `slowest`, `median` and `total` are of the
    successful tasks. `partition` and `host` are those of the slowest one. `task_seconds` begins
    with the slowest task; Spark may keep fewer than all `tasks`. The first `uneven_tasks` of them
    took much longer than the median. `verdict` judges them; None if there are none. A stage
    `is_slow` if even tasks would save enough time for a change. It `is_below_thresholds` if
    settings keep adaptive execution from splitting its largest partition.
    """

    stage: int
    prepares: bool
    joins: tuple[ExecutedJoin, ...]
    tasks: int
    failed_tasks: int
    partition: int
    host: str
    slowest: TaskFigures
    median: TaskFigures
    total: TaskFigures
    uneven_tasks: int
    is_slow: bool
    verdict: str | None
    is_below_thresholds: bool
    task_seconds: tuple[float, ...]
    _derived = ("times",)

    @property
    def times(self) -> float | None:
        """The slowest task over the median; None if most tasks took no time."""
        return self.slowest.seconds / self.median.seconds if self.median.seconds else None

    @classmethod
    def of(cls, figures: dict[str, Any]) -> JoinStage:
        """Read the figures of the JVM."""
        joins = tuple(
            filled(ExecutedJoin, join, keys=None if join["keys"] is None else tuple(join["keys"]))
            for join in figures["joins"]
        )
        return filled(
            cls,
            figures,
            joins=joins,
            partition=figures["slowest"]["partition"],
            host=figures["slowest"]["host"],
            slowest=TaskFigures.of(figures["slowest"]),
            median=TaskFigures.of(figures["median"]),
            total=TaskFigures.of(figures["total"]),
            task_seconds=tuple(each / 1000 for each in figures["run_ms"]),
        )


class JoinInput(NamedTuple):
    """An input of a join of Spark's.

    `rows` is None if no operator counts them. The join reads a `shuffled` input from a shuffle,
    which `stage` wrote, if that is known. A `chained` one is the result of a full outer join.
    """

    rows: int | None
    shuffled: bool
    stage: int | None
    chained: bool


@dataclass(frozen=True)
class JoinWork:
    """The work of a join of Spark's: its inputs, from left to right.

    `condition` is the form of a condition that it tests for all pairs of rows: ``"range"``,
    ``"or"`` or None.
    """

    stage: int
    operator: str
    keys: list[str] | None
    condition: str | None
    inputs: list[JoinInput]
    _parts: ClassVar[Any] = {"inputs": JoinInput}

    @property
    def tests_pairs(self) -> bool:
        """Whether it has no equal keys."""
        return self.operator in ("BroadcastNestedLoopJoin", "CartesianProduct")


class StageWork(NamedTuple):
    """The work of a stage that runs joins, or writes their inputs, by all its tasks.

    A stage that is not `is_known` has operators that may take any time for a row.
    """

    stage: int
    run_seconds: float
    scanned_rows: int
    read_rows: int
    written_rows: int
    written_bytes: int
    output_rows: int
    disk_spilled: int
    aggregated_rows: int
    joined_rows: int
    is_known: bool


class QuerySummary(NamedTuple):
    """A finished query: its number, its description, its time and its number of joins."""

    query: int
    description: str
    seconds: float
    joins: int


@dataclass(frozen=True)
class Settings:
    """The settings of the query."""

    skewext_loaded: bool
    extensions: str
    switched_off: list[str]
    shuffle_partitions: int
    skewed_bytes: int
    skewed_factor: float
    advisory_bytes: int


@dataclass(frozen=True)
class QueryFigures:
    """The figures of a query; ``QueryReport`` describes them."""

    query: int
    description: str
    seconds: float
    failure: str | None
    join_count: int
    stages: list[JoinStage]
    other_seconds: float
    explained: list[str]
    advice: list[str]
    settings: Settings
    queries: list[QuerySummary]
    join_work: list[JoinWork]
    stage_work: list[StageWork]
    application: str | None
    application_id: str | None
    spark_version: str | None
    event_log: str | None = None
    _parts: ClassVar[Any] = {"settings": Settings, "join_work": JoinWork}

    @classmethod
    def of(cls: type[F], figures: dict[str, Any]) -> F:
        """Read the figures of the JVM."""
        return filled(
            cls,
            figures,
            seconds=figures["milliseconds"] / 1000,
            join_count=figures["joins"],
            stages=list(map(JoinStage.of, figures["stages"])),
            other_seconds=figures["other_run_ms"] / 1000,
            stage_work=[
                filled(StageWork, work, run_seconds=work["run_ms"] / 1000)
                for work in figures["stage_work"]
            ],
            queries=[
                filled(QuerySummary, query, seconds=query["milliseconds"] / 1000)
                for query in figures["queries"]
            ],
        )
