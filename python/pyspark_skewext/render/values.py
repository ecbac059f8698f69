"""Keys and numbers as text, and as JSON."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_skewext.results.query import ExecutedJoin, JoinStage, JoinWork
    from pyspark_skewext.results.skew import Bounds

_SHOWN = 40


def shown(value: Any) -> str:
    """Write a key for a table, cut if it is long; quotes and the like show its type."""
    text = _plain(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _plain(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return f"x'{bytes(value).hex()}'"
    if isinstance(value, (Decimal, datetime.date, datetime.time, datetime.timedelta)):
        return str(value)
    if isinstance(value, tuple):
        names = getattr(value, "__fields__", None)
        if names:
            return ", ".join(f"{name}={_plain(each)}" for name, each in zip(names, value))
        return f"({', '.join(map(_plain, value))})"
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    return "NULL" if value is None else repr(value)


def bytes_shown(size: float) -> str:
    """Write a number of bytes with a unit of Spark's UI."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def jsonable(value: Any) -> Any:
    """Convert a value to types of JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        names = [field.name for field in fields if not field.name.startswith("_")]
        names += getattr(value, "_derived", ())
        return {name: jsonable(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or getattr(value, "__fields__", [])
        if names:
            return {name: jsonable(each) for name, each in zip(names, value)}
    if isinstance(value, (list, tuple)):
        return [jsonable(each) for each in value]
    if isinstance(value, dict):
        return {name: jsonable(each) for name, each in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def bounds(given: Bounds) -> str:
    """Write bounds as one number if they are equal, else as two."""
    return f"{given.low:,}" if given.is_exact else f"{given.low:,} to {given.high:,}"


def percent(share: float) -> str:
    """Write a share; a small one does not look like zero."""
    return f"{share:.1%}" if share >= 0.001 or not share else "< 0.1%"


def times(number: float) -> str:
    """Write a ratio."""
    return f"{number:,.0f} times" if number >= 10 else f"{number:.1f} times"


def seconds(value: float) -> str:
    """Write a time with a unit."""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:,.1f} min"


def counted(number: int, noun: str) -> str:
    """Write a number of things."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def numbers(values: Sequence[int]) -> str:
    """List the first numbers."""
    listed = ", ".join(f"{value:,}" for value in values[:8])
    return f"{listed} and {len(values) - 8:,} more" if len(values) > 8 else listed


def joins_shown(stage: JoinStage) -> str:
    """Name the joins of a stage."""
    names = [join_shown(join) for join in stage.joins[:2]]
    more = f" and {len(stage.joins) - 2} more" if len(stage.joins) > 2 else ""
    return f"{'before ' if stage.prepares else ''}{', '.join(names)}{more}"


def join_shown(join: ExecutedJoin | JoinWork) -> str:
    """Name a join by its operator and its key."""
    return f"{join.operator} on {', '.join(join.keys)}" if join.keys else join.operator
