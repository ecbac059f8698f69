"""Whether two DataFrames are the same multiset of rows, and which of two is faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf


@dataclass(frozen=True)
class Fingerprint:
    """Row count and the sum of a 64-bit hash of every row: independent of the rows' order."""

    rows: int
    checksum: int


@dataclass(frozen=True)
class Timings:
    """Seconds of the measured runs of one plan."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """The middle run."""
        return median(self.seconds)

    @property
    def best(self) -> float:
        """The fastest run."""
        return min(self.seconds)


def fingerprint(df: DataFrame) -> Fingerprint:
    """Summarize all rows and all columns of `df`.

    ``xxhash64`` skips nulls, so (1, null) and (null, 1) would look alike, and a full outer join
    is full of nulls; therefore the nulls' places are hashed too.
    """
    columns = [sf.col(f"`{name}`") for name in df.columns]
    row_hash = sf.xxhash64(*columns, *[column.isNull() for column in columns])
    found = df.agg(
        sf.count(sf.lit(1)).alias("rows"),
        # A sum of longs may overflow; 38 digits have room for 10^19 rows.
        sf.sum(row_hash.cast("decimal(38, 0)")).alias("checksum"),
    ).first()
    assert found is not None
    return Fingerprint(found["rows"], int(found["checksum"] or 0))


def only_in_first(first: DataFrame, second: DataFrame, limit: int = 3) -> list[str]:
    """Collect a few rows of `first` that `second` lacks, to show when the fingerprints differ."""
    return [str(row) for row in first.exceptAll(second).limit(limit).collect()]


def run(df: DataFrame) -> float:
    """Seconds to compute every row and column of `df`, which are then thrown away."""
    start = time.perf_counter()
    df.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def interleaved(
    legs: Mapping[str, Callable[[], float]], runs: int, progress: Callable[[str], None]
) -> dict[str, Timings]:
    """Time every leg `runs` times, in turns.

    Every second round goes backwards, so that no leg always profits from running last.
    """
    seconds: dict[str, list[float]] = {name: [] for name in legs}
    for number in range(1, runs + 1):
        names = list(legs) if number % 2 else list(reversed(list(legs)))
        for name in names:
            seconds[name].append(legs[name]())
        took = ", ".join(f"{name} {seconds[name][-1]:.2f} s" for name in names)
        progress(f"run {number} of {runs}: {took}")
    return {name: Timings(values) for name, values in seconds.items()}


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Set a session setting for a while and put back what was there."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)
