"""The figures of ``explain``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Origin:
    """Where a join comes from: a status, the reason with its detail, and advice.

    The status is `asked for`, `rewritten`, `split`, `not rewritten` or `switched off`.
    """

    status: str
    text: str
    detail: str | None
    advice: str | None


@dataclass(frozen=True)
class ExplainedInput:
    """An input of a join.

    `narrowed_from` is the role in the query, if the optimizer has narrowed it. `filters` are the
    conditions on the rows of the input in the plan, also those that the query has above the join,
    and `read` limits what Spark reads. `hint` describes the effect of a hint.
    """

    position: int
    role: str | None
    narrowed_from: str | None
    source: str
    key: list[str]
    filters: list[str]
    read: list[str]
    hint: str | None = None


@dataclass(frozen=True)
class Execution:
    """How an operator of the extension works.

    `rows` is the grouping by key and `null_keys` the treatment of null keys. `exchanges`,
    `columns` and `counted` count the exchanges below it: all, columnar ones, and those with key
    sampling. `by_row` gives the reasons why others write rows.
    """

    rows: str
    null_keys: str
    exchanges: int
    columns: int
    by_row: list[str]
    counted: int


@dataclass(frozen=True)
class ExplainedSkew:
    """The split of skewed partitions of an operator: a status, the reason, and advice.

    The `status` is "split", "whole" if no partition is split, or "not run".
    It counts the split `partitions`, the tasks for slices (`pieces`), and the tasks for unmatched
    rows (`residuals`).
    """

    operator: str
    status: str
    text: str
    partitions: int = 0
    pieces: int = 0
    residuals: int = 0
    advice: str | None = None


@dataclass(frozen=True)
class ExplainedJoin:
    """A join of the query; `execution` is None for operators of Spark."""

    number: int
    place: str
    title: str
    operators: list[str]
    origin: Origin
    inputs: list[ExplainedInput]
    execution: Execution | None
    skew: list[ExplainedSkew]
    _parts: ClassVar[Any] = {
        "origin": Origin,
        "inputs": ExplainedInput,
        "execution": Execution,
        "skew": ExplainedSkew,
    }


@dataclass(frozen=True)
class ExplainedScan:
    """A scan of a bucketed table.

    `read` of its `buckets` are read, because of `why`. `partitions` is their number, if each bucket
    is a partition.
    """

    number: int
    place: str
    source: str
    by: list[str]
    buckets: int
    read: int
    partitions: int | None
    why: str
    advice: str | None
