"""The figures of ``skew_report``."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, NamedTuple, TypeVar

from pyspark_skewext.results import filled

F = TypeVar("F", bound="SkewFigures")


class Bounds(NamedTuple):
    """The least and the largest possible value of a number."""

    low: int
    high: int

    @property
    def middle(self) -> float:
        """The mean of the two."""
        return (self.low + self.high) / 2

    @property
    def is_exact(self) -> bool:
        """Whether both are the same."""
        return self.low == self.high


@dataclass(frozen=True)
class Slowest:
    """The partition with the slowest expected task, and the median size of a partition.

    A size counts bytes in memory, and for a join also the output, weighted by its cost.
    """

    partition: int
    size: float
    median: float
    _derived = ("times",)

    @property
    def times(self) -> float | None:
        """The size over the median; None if most partitions are empty."""
        return self.size / self.median if self.median else None

    @classmethod
    def of(cls, sizes: Sequence[float]) -> Slowest:
        """Find it among the sizes of all partitions."""
        partition = max(range(len(sizes)), key=sizes.__getitem__)
        return cls(partition, sizes[partition], statistics.median(sizes))


@dataclass(frozen=True)
class HotKey:
    """A key with many rows.

    `key` is its value, as `collect()` returns it; a Row for a key of several columns. `rows`,
    `other_rows` and `output_rows` are bounds: in `df`, in `other` and in a join. `share` is its
    share of the rows with a key, by the middle of the bounds.
    """

    key: Any
    partition: int
    rows: Bounds
    share: float
    other_rows: Bounds | None = None
    output_rows: Bounds | None = None


class LargestRow(NamedTuple):
    """A row that is most of the largest partition, and its key; None for a NULL, or a large key."""

    bytes: int
    partition: int
    key: Any


@dataclass(frozen=True)
class KeySkew:
    """The distribution of the rows of one DataFrame.

    `distinct` estimates the number of keys; its bounds hold in 95 of 100 cases. The partitions are
    those of a shuffle by the key. Their bytes are in memory; shuffle files are smaller. `max_error`
    is the largest distance of the bounds of a key. `untracked_rows` have keys that were too large
    to count one by one. Adaptive execution splits a partition above `split_above_bytes` into slices
    of `slice_bytes`. `largest_row` is set if sizes are measured and a single row is the reason for
    the largest partition.
    """

    keys: tuple[str, ...]
    rows: int
    null_rows: int
    distinct: int
    distinct_bounds: Bounds
    partition_rows: tuple[int, ...]
    partition_null_rows: tuple[int, ...]
    partition_bytes: tuple[int, ...]
    row_bytes: int
    max_error: int
    untracked_rows: int
    split_above_bytes: int
    slice_bytes: int
    largest_row: LargestRow | None = None
    _derived = ("skewed_partitions",)

    @property
    def null_share(self) -> float:
        """The share of rows with a null in the key."""
        return self.null_rows / self.rows if self.rows else 0.0

    @property
    def skewed_partitions(self) -> list[int]:
        """The partitions that adaptive execution would split, by their size in memory."""
        sizes = enumerate(self.partition_bytes)
        return [partition for partition, size in sizes if size > self.split_above_bytes]

    @classmethod
    def of(
        cls, keys: Sequence[str], figures: dict[str, Any], hot_keys: Sequence[Any] = ()
    ) -> KeySkew:
        """Read the figures of the JVM; `hot_keys` has the values of the keys in their order."""
        null_rows = figures["partition_null_rows"]
        largest = figures.get("largest_row")
        return filled(
            cls,
            figures,
            keys=tuple(keys),
            null_rows=sum(null_rows),
            distinct_bounds=Bounds(figures["distinct_low"], figures["distinct_high"]),
            partition_rows=tuple(map(sum, zip(figures["partition_rows"], null_rows))),
            partition_null_rows=tuple(null_rows),
            partition_bytes=tuple(figures["partition_bytes"]),
            largest_row=largest
            and LargestRow(
                largest["bytes"],
                largest["partition"],
                None if largest["key"] is None else hot_keys[largest["key"]],
            ),
        )


@dataclass(frozen=True)
class OutputSkew:
    """The output of an inner join of both. Outer joins add unmatched rows.

    `rows` is an estimate: the product for hot keys, an average for all other keys. `hot_rows` are
    bounds of the rows of the hot keys. The extension splits a partition above `split_above_bytes`
    of input and output.
    """

    rows: int
    hot_rows: Bounds
    partition_rows: tuple[int, ...]
    row_bytes: int
    split_above_bytes: int

    @classmethod
    def of(cls, figures: dict[str, Any]) -> OutputSkew:
        """Read the figures of the JVM."""
        hot_rows = Bounds(figures["hot_low"], figures["hot_high"])
        partition_rows = tuple(figures["partition_rows"])
        return filled(cls, figures, hot_rows=hot_rows, partition_rows=partition_rows)


@dataclass(frozen=True)
class Settings:
    """The settings of the session that concern skew."""

    spark_splits: bool
    skewext_splits: bool
    skewed_factor: float
    broadcast_bytes: int


@dataclass(frozen=True)
class SkewFigures:
    """The figures of the skew of a key; ``SkewReport`` describes them."""

    on: tuple[str, ...]
    shuffle_partitions: int
    df: KeySkew
    other: KeySkew | None
    output: OutputSkew | None
    hot_keys: list[HotKey]
    slowest: Slowest
    settings: Settings

    @classmethod
    def of(
        cls: type[F],
        names: Sequence[str],
        keys: Sequence[Sequence[str]],
        figures: dict[str, Any],
        hot_rows: Sequence[tuple[Any, ...]],
    ) -> F:
        """Read the figures and the hot keys of the JVM."""
        values = [_value(names, key) for key, *_ in hot_rows]
        df, *others = (KeySkew.of(*each, values) for each in zip(keys, figures["inputs"]))
        other = others[0] if others else None
        output = OutputSkew.of(figures["output"]) if figures["output"] else None
        hot_keys = [_hot_key(names, df, *row) for row in hot_rows]
        hot_keys.sort(key=lambda key: _weight(key, df, other, output), reverse=True)
        return cls(
            on=tuple(names),
            shuffle_partitions=figures["shuffle_partitions"],
            df=df,
            other=other,
            output=output,
            hot_keys=hot_keys,
            slowest=Slowest.of(_sizes(df, other, output, figures["output_cost"])),
            settings=filled(Settings, figures),
        )


def _hot_key(
    names: Sequence[str],
    df: KeySkew,
    key: Sequence[Any],
    partition: int,
    least: Sequence[int],
    most: Sequence[int],
) -> HotKey:
    bounds = list(map(Bounds, least, most))
    return HotKey(
        key=_value(names, key),
        partition=partition,
        rows=bounds[0],
        share=bounds[0].middle / max(1, df.rows - df.null_rows),
        other_rows=bounds[1] if len(bounds) > 1 else None,
        output_rows=Bounds(*map(mul, *bounds)) if len(bounds) > 1 else None,
    )


def _value(names: Sequence[str], key: Sequence[Any]) -> Any:
    from pyspark.sql import Row

    return key[0] if len(names) == 1 else Row(*names)(*key)


def _weight(
    key: HotKey, df: KeySkew, other: KeySkew | None, output: OutputSkew | None
) -> tuple[float, float]:
    """Its largest share of an input or of the output; then its number of rows."""
    shares = [key.share]
    if other is not None and key.other_rows is not None:
        shares.append(key.other_rows.middle / max(1, other.rows - other.null_rows))
    if output is not None and key.output_rows is not None:
        shares.append(key.output_rows.middle / max(1, output.rows))
    return max(shares), key.rows.middle


def _sizes(
    df: KeySkew, other: KeySkew | None, output: OutputSkew | None, output_cost: float
) -> Sequence[float]:
    if other is None or output is None:
        return df.partition_bytes
    return [
        one + two + output_cost * output.row_bytes * rows
        for one, two, rows in zip(df.partition_bytes, other.partition_bytes, output.partition_rows)
    ]
