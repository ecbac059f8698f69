"""What ``skew_report`` finds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Row


class Bounds(NamedTuple):
    """The least and the most that a number can be."""

    low: int
    high: int

    @property
    def middle(self) -> float:
        """Half way between the two."""
        return (self.low + self.high) / 2

    @property
    def is_exact(self) -> bool:
        """Whether both are the same."""
        return self.low == self.high


class Slowest(NamedTuple):
    """The partition whose task is expected to take longest.

    Attributes
    ----------
    partition
        Which it is, counting from 0.
    size, median
        Its size and that of the partition in the middle: rows, or for a join bytes read and, as far
        as they cost time, written.
    """

    partition: int
    size: float
    median: float

    @property
    def times(self) -> float | None:
        """How many times the median it is; None if most partitions are empty."""
        return self.size / self.median if self.median else None

    @classmethod
    def of(cls, sizes: Sequence[float]) -> Slowest:
        """Find it among the sizes of all partitions."""
        partition = max(range(len(sizes)), key=sizes.__getitem__)
        return cls(partition, sizes[partition], statistics.median(sizes))


@dataclass(frozen=True)
class HotKey:
    """A key with many rows.

    Attributes
    ----------
    key
        Its value, of the type that `collect()` gives; a Row where the key has several columns.
    partition
        Where a shuffle by the key sends its rows, counting from 0.
    rows
        Bounds of how many rows it has.
    share
        Its part of the rows that have a key, by the middle of the bounds.
    other_rows
        Bounds of how many rows it has in `other`, if there is one.
    output_rows
        Bounds of how many rows a join gives for it: the product.
    """

    key: Any
    partition: int
    rows: Bounds
    share: float
    other_rows: Bounds | None = None
    output_rows: Bounds | None = None


@dataclass(frozen=True)
class KeySkew:
    """How the rows of one DataFrame lie.

    Attributes
    ----------
    keys
        The names of its key columns.
    rows, null_rows
        All rows, and those that have a null in the key.
    distinct, distinct_bounds
        An estimate of how many keys there are, and bounds that hold in 95 of 100 cases.
    partition_rows, partition_null_rows, partition_bytes
        What a shuffle by the key sends to each partition: all rows, those of them with a null in
        the key, and their size in memory. Shuffle files are compressed, and smaller.
    row_bytes
        The size of a row, measured or guessed.
    max_error
        The most by which the bounds of a key's rows can be apart.
    untracked_rows
        Rows whose keys were too large to be looked at one by one.
    split_above_bytes
        From which size on adaptive execution takes a partition for skewed in this session.
    slice_bytes
        Into parts of which size it then splits it.
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

    @property
    def null_share(self) -> float:
        """The part of the rows that has a null in the key."""
        return self.null_rows / self.rows if self.rows else 0.0

    @property
    def skewed_partitions(self) -> list[int]:
        """The partitions that adaptive execution would split, going by their size in memory."""
        return [
            partition
            for partition, size in enumerate(self.partition_bytes)
            if size > self.split_above_bytes
        ]

    @classmethod
    def of(cls, keys: Sequence[str], figures: dict[str, Any]) -> KeySkew:
        """Read what the JVM has found."""
        null_rows = figures["partition_null_rows"]
        return cls(
            keys=tuple(keys),
            rows=figures["rows"],
            null_rows=sum(null_rows),
            distinct=figures["distinct"],
            distinct_bounds=Bounds(figures["distinct_low"], figures["distinct_high"]),
            partition_rows=tuple(map(sum, zip(figures["partition_rows"], null_rows))),
            partition_null_rows=tuple(null_rows),
            partition_bytes=tuple(figures["partition_bytes"]),
            row_bytes=figures["row_bytes"],
            max_error=figures["max_error"],
            untracked_rows=figures["untracked_rows"],
            split_above_bytes=figures["split_above_bytes"],
            slice_bytes=figures["slice_bytes"],
        )


@dataclass(frozen=True)
class OutputSkew:
    """What an inner join of the two gives. Other joins add the rows that match nothing.

    Attributes
    ----------
    rows
        An estimate: for hot keys the product of their rows, for the others as if each had as many
        rows as the next.
    hot_rows
        Bounds of what comes out for the hot keys of the report.
    partition_rows
        The estimate for each partition.
    row_bytes
        The size of a row, if it has all columns of both.
    split_above_bytes
        From which size on, of what a partition reads and gives, the extension splits it.
    """

    rows: int
    hot_rows: Bounds
    partition_rows: tuple[int, ...]
    row_bytes: int
    split_above_bytes: int

    @classmethod
    def of(cls, figures: dict[str, Any]) -> OutputSkew:
        """Read what the JVM has found."""
        return cls(
            rows=figures["rows"],
            hot_rows=Bounds(figures["hot_low"], figures["hot_high"]),
            partition_rows=tuple(figures["partition_rows"]),
            row_bytes=figures["row_bytes"],
            split_above_bytes=figures["split_above_bytes"],
        )


@dataclass(frozen=True)
class Settings:
    """What the session would do about skew."""

    spark_splits: bool
    skewext_splits: bool
    skewed_factor: float
    broadcast_bytes: int


@dataclass(frozen=True)
class SkewFigures:
    """Where the skew of a key is; ``SkewReport`` says what each is."""

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
        cls,
        names: Sequence[str],
        keys: Sequence[Sequence[str]],
        figures: dict[str, Any],
        hot_rows: Sequence[Row],
    ) -> SkewFigures:
        """Put together what the JVM has found."""
        df, *others = (KeySkew.of(*each) for each in zip(keys, figures["inputs"]))
        other = others[0] if others else None
        output = OutputSkew.of(figures["output"]) if figures["output"] else None
        hot_keys = [_hot_key(names, row, df) for row in hot_rows]
        hot_keys.sort(key=lambda key: _weight(key, df, other, output), reverse=True)
        settings = Settings(
            spark_splits=figures["spark_splits"],
            skewext_splits=figures["skewext_splits"],
            skewed_factor=figures["skewed_factor"],
            broadcast_bytes=figures["broadcast_bytes"],
        )
        slowest = Slowest.of(_sizes(df, other, output, figures["output_cost"]))
        return cls(
            on=tuple(names),
            shuffle_partitions=figures["shuffle_partitions"],
            df=df,
            other=other,
            output=output,
            hot_keys=hot_keys,
            slowest=slowest,
            settings=settings,
        )


def _hot_key(names: Sequence[str], row: Row, df: KeySkew) -> HotKey:
    from pyspark.sql import Row

    values = list(row)
    key = values[: len(names)]
    partition, *counts = values[len(names) :]
    bounds = [Bounds(low, high) for low, high in zip(counts[::2], counts[1::2])]
    return HotKey(
        key=key[0] if len(names) == 1 else Row(*names)(*key),
        partition=partition,
        rows=bounds[0],
        share=bounds[0].middle / max(1, df.rows - df.null_rows),
        other_rows=bounds[1] if len(bounds) > 1 else None,
        output_rows=_product(*bounds) if len(bounds) > 1 else None,
    )


def _product(one: Bounds, other: Bounds) -> Bounds:
    return Bounds(one.low * other.low, one.high * other.high)


def _weight(
    key: HotKey, df: KeySkew, other: KeySkew | None, output: OutputSkew | None
) -> tuple[float, float]:
    """Its largest share of anything; of equal ones the key with more rows first."""
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
        return df.partition_rows
    return [
        one + two + output_cost * output.row_bytes * rows
        for one, two, rows in zip(df.partition_bytes, other.partition_bytes, output.partition_rows)
    ]
