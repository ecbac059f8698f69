"""The checked arguments of the calls of both engines, and the fetching of keys.

The fields are in the order of the arguments of ``io.github.skewext.PythonApi``, and have the names
of those of the table functions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_skewext._jvm import is_a

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class MultiJoin(NamedTuple):
    """A join with one operator."""

    frames: Sequence[DataFrame]
    keys: Sequence[Sequence[str]]
    names: Sequence[str]
    roles: Sequence[str]
    suffixes: Sequence[str | None] | None
    indicator: str | None


class SkewJoin(NamedTuple):
    """A join of two sides by a technique."""

    left: DataFrame
    right: DataFrame
    on: Any
    how: str
    technique: str
    options: Mapping[str, str]
    hot_keys: Sequence[tuple[Any, ...]] | None


class Interval(NamedTuple):
    """An interval, in the words of SQL."""

    words: str

    def sql(self) -> str:
        """The literal of SQL."""
        return f"INTERVAL {quoted(self.words)}"


class AsOfJoin(NamedTuple):
    """An as-of join; each list has an entry for each table of versions."""

    spine: DataFrame
    versions: Sequence[DataFrame]
    spine_keys: Sequence[Sequence[str]]
    keys: Sequence[Sequence[str]]
    time: str
    times: Sequence[str]
    directions: Sequence[str]
    tolerances: Sequence[Any]
    exact: Sequence[bool]
    ties: Sequence[Sequence[Any] | None]
    how: str
    suffixes: Sequence[str | None] | None


class LatestRows(NamedTuple):
    """The newest row of each key; orders are names or Columns."""

    df: DataFrame
    keys: Sequence[str]
    by: Sequence[Any]
    ties: Sequence[Any] | None


class KeyCount(NamedTuple):
    """A count of the keys of one or two inputs."""

    frames: Sequence[DataFrame]
    keys: Sequence[Sequence[str]]
    partitions: int | None
    min_share: float
    sizes: bool
    progress: Callable[[int, int], None] | None


#: The bounds of `min_share`. A smaller share needs a sketch that is too large for a task.
LEAST_SHARE, LARGEST_SHARE = 0.00001, 0.5


class BucketedWrite(NamedTuple):
    """A write of a bucketed table."""

    df: DataFrame
    table: str
    format: str | None
    by: Sequence[str]
    buckets: int
    sort: Sequence[str]
    mode: str
    partition_by: Sequence[str]
    options: Mapping[str, str]


def plain(value: Any) -> Any:
    """A number or bool of numpy as one of Python."""
    # None has it if nothing has imported numpy.
    numpy: Any = sys.modules.get("numpy")
    return value.item() if numpy and isinstance(value, (numpy.number, numpy.bool_)) else value


def frames_of(arguments: Iterable[Any]) -> list[DataFrame]:
    """The DataFrames among arguments, alone or in a list."""
    listed = (each if isinstance(each, list) else [each] for each in arguments)
    return [each for items in listed for each in items if is_a(each, "DataFrame")]


def identifier(name: str) -> str:
    """The name of a column as SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def quoted(text: str) -> str:
    """A string as SQL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def names_of(on: Any) -> list[str] | None:
    """The names of key columns; None for a condition."""
    names = [on] if isinstance(on, str) else on
    by_name = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
    return list(names) if by_name else None


def nothing_active(spark: str, reason: str) -> dict[str, Any]:
    """The figures of ``doctor`` without a JVM that lists the parts."""
    parts = [{"name": "all parts", "active": False, "reason": reason}]
    return {"spark": spark, "parts": parts, "notes": []}


def counted(
    found: DataFrame, times_as_text: bool = False
) -> tuple[dict[str, Any], Sequence[tuple[Any, ...]]]:
    """Fetch the figures, and the hot keys: values, partition, least and most rows of each input.

    Values are text if Python has no type for one, such as a date before 1.
    """
    from pyspark.sql.types import StringType, StructType, TimestampNTZType, TimestampType

    def with_texts(*kinds: type) -> DataFrame:
        key: Any = found.schema["key"].dataType
        texts = StructType()
        for position, field in enumerate(key):
            is_text = isinstance(field.dataType, kinds)
            texts.add(f"k{position}", StringType() if is_text else field.dataType)
        return found.withColumn("key", found["key"].cast(texts))

    try:
        shown = with_texts(TimestampType, TimestampNTZType) if times_as_text else found
        rows = shown.collect()
    except (ValueError, OverflowError, TypeError, NotImplementedError):
        # PySpark raises these for values without a type.
        rows = with_texts(object).collect()
    # One row has the figures. Each other row has a key.
    figures = json.loads(next(row[4] for row in rows if row[4] is not None))
    return figures, [row[:4] for row in rows if row[4] is None]
