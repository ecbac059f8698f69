"""Comparing results as multisets of rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame


def assert_same_rows(actual: Any, expected: Any) -> None:
    """Both, DataFrames or lists of rows, have the same rows equally often, in any order.

    As in Spark's joins NaN equals NaN and -0.0 equals 0.0; numbers are compared by value, so that
    a decimal may have another scale.
    """
    one, other = multiset(actual), multiset(expected)
    missing, extra = other - one, one - other
    if missing or extra:
        raise AssertionError(f"missing: {_shown(missing)}\nunexpected: {_shown(extra)}")


def multiset(rows: DataFrame | Iterable[Any]) -> Counter[Any]:
    if isinstance(rows, DataFrame):
        rows = rows.collect()
    return Counter(_comparable(row) for row in rows)


def _comparable(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, (list, tuple)):
        return tuple(_comparable(each) for each in value)
    if isinstance(value, bytearray):
        return bytes(value)
    return value


def _shown(rows: Counter[Any]) -> str:
    return ", ".join(f"{times} x {row}" for row, times in rows.most_common(10)) or "none"
