"""Comparing results as multisets of rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from pyspark_skewext._jvm import is_a


def assert_same_rows(actual: Any, expected: Any) -> None:
    """Both, DataFrames or lists of rows, have the same rows equally often, in any order.

    As in Spark's joins NaN equals NaN and -0.0 equals 0.0; numbers are compared by value, so that
    a decimal may have another scale.
    """
    one, other = multiset(actual), multiset(expected)
    missing, extra = other - one, one - other
    if missing or extra:
        raise AssertionError(f"missing: {_shown(missing)}\nunexpected: {_shown(extra)}")


def assert_nearly_same_rows(
    actual: Iterable[Any], expected: Iterable[Any], relative: float, absolute: float
) -> None:
    """The same, but numbers may differ a little.

    Sums of floats depend on the order of rows, and of quotients of decimals Spark and DuckDB keep
    different numbers of digits.
    """
    one, other = (sorted(map(_comparable, rows), key=_place) for rows in (actual, expected))
    assert len(one) == len(other), f"{len(one)} rows, not {len(other)}"
    for row, wanted in zip(one, other):
        assert len(row) == len(wanted)
        for value, number in zip(row, wanted):
            assert value == number or (
                isinstance(value, (int, float, Decimal))
                and isinstance(number, (int, float, Decimal))
                and math.isclose(value, number, rel_tol=relative, abs_tol=absolute)
            ), f"{value} is not {number} in {row}, {wanted}"


def _place(row: tuple[Any, ...]) -> tuple[list[str], list[str]]:
    """What to sort rows by that may differ a little: whole columns first, then rounded ones."""
    whole = [str(v) for v in row if not isinstance(v, (float, Decimal))]
    rounded = [f"{float(v):.4g}" for v in row if isinstance(v, (float, Decimal))]
    return whole, rounded


def multiset(rows: Any) -> Counter[Any]:
    if is_a(rows, "DataFrame"):
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
