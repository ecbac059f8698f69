"""A join by a technique on a Spark Connect server: by the hint, and a look at what came of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark_skewext import _connect
from pyspark_skewext._errors import analysis_error, runtime_error, type_error, value_error

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# What skew_report takes.
_LEAST_SHARE = 0.00001
_LARGEST_SHARE = 0.5


def hinted(
    left: DataFrame,
    right: DataFrame,
    on: str | Sequence[str] | Column | Sequence[Column],
    how: str,
    technique: str,
    options: dict[str, str],
    hot_keys: Sequence[tuple[Any, ...]] | None,
) -> DataFrame:
    """Join with the hint; the session has the extension. Refuse what the server does not do."""
    spark = left.sparkSession
    words = [f"{name}={value}" for name, value in options.items()]
    # What is in it decides about nothing here.
    _check_hint(spark, technique, words if hot_keys is None else [*words, "hot_keys=0"])
    if technique == "salted" and hot_keys is None:
        hot_keys = _found(left, right, on)
    if hot_keys:
        words.append(f"hot_keys={_as_text(hot_keys)}")
    elif technique == "salted":
        # Nothing to divide.
        return plainly_joined(left, right, on, how)
    joined = plainly_joined(left, right.hint("skew_join", technique, *words), on, how)
    _check_join(joined, technique)
    return joined


def plainly_joined(left: DataFrame, right: DataFrame, on: Any, how: str) -> DataFrame:
    """Join as Spark does by itself, which takes no other sequence than a list."""
    several = isinstance(on, Sequence) and not isinstance(on, str)
    return left.join(right, list(on) if several else on, how)


def _check_hint(spark: SparkSession, technique: str, words: Sequence[str]) -> None:
    """Spark leaves out a hint that is wrong, with a warning in the server's log alone."""
    if not _is_taken(spark, technique, words):
        if _is_taken(spark, technique, []):
            raise analysis_error(
                f"The technique {technique} does not have all of these options: "
                f"{', '.join(word.split('=', 1)[0] for word in words)}."
            )
        raise value_error(f"There is no technique {technique!r} on the Spark Connect server.")


def _is_taken(spark: SparkSession, technique: str, words: Sequence[str]) -> bool:
    one = spark.range(1)
    return "skew_join" in _origin(one.join(one.hint("skew_join", technique, *words), "id"))


def _check_join(joined: DataFrame, technique: str) -> None:
    # Spark makes a view of what it is given, whose columns must not share a name.
    named = joined.toDF(*(f"c{position}" for position in range(len(joined.columns))))
    refused = f"skew_join by {technique} is Spark's own join: "
    said = _origin(named)
    if refused in said:
        raise analysis_error(
            f"The technique {technique} cannot do this join: {said.split(refused, 1)[1]}."
        )


def _origin(df: DataFrame) -> str:
    """What the server says of the uppermost join; nothing where none is left of it."""
    found = json.loads(_connect.call(df.sparkSession, "skewext_explain", [df]).collect()[0][0])
    if not found["joins"]:
        if found["notes"]:
            raise runtime_error(f"The query could not be explained: {' '.join(found['notes'])}")
        return ""
    origin = found["joins"][0]["origin"]
    detail = origin.get("detail")
    return f"{origin['text']} ({detail})" if detail else str(origin["text"])


def _found(left: DataFrame, right: DataFrame, on: Any) -> list[tuple[Any, ...]]:
    """The keys with more rows than a partition has on average: by two jobs, as a hint runs none."""
    spark = left.sparkSession
    names = [on] if isinstance(on, str) else on
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise value_error(
            "With Spark Connect, salted needs hot_keys where on is a condition: "
            "skew_report tells them."
        )
    average = 1 / int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    rows = _connect.call(
        spark,
        "skewext_skew_report",
        [left, right],
        {"keys": list(names), "min_share": min(max(average, _LEAST_SHARE), _LARGEST_SHARE)},
    ).collect()
    figures = json.loads(next(row["figures"] for row in rows if row["figures"] is not None))
    least = average * sum(each["rows"] for each in figures["inputs"])
    return [
        tuple(row["key"])
        for row in rows
        if row["figures"] is None
        and max((low + high) / 2 for low, high in zip(row["least_rows"], row["most_rows"])) > least
    ]


def _as_text(keys: Sequence[tuple[Any, ...]]) -> str:
    return ("," if len(keys[0]) == 1 else "; ").join(
        ",".join(_value_text(value, len(key)) for value in key) for key in keys
    )


def _value_text(value: Any, columns: int) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, Decimal)) or (
        isinstance(value, date) and not isinstance(value, datetime)
    ):
        return str(value)
    if not isinstance(value, str):
        raise type_error(
            f"A hot key of type {type(value).__name__} cannot be given to a Spark Connect server, "
            f"whose hints take numbers, text and dates."
        )
    if value != value.strip() or value == "" or "," in value or (columns > 1 and ";" in value):
        raise value_error(
            f"The hot key {value!r} cannot be given to a Spark Connect server: its hints take no "
            f"text that is empty, begins or ends with a space, or has a comma or semicolon in it."
        )
    return value
