"""Joins and their answers, as they are with any session."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyspark_skewext as skewext


def inputs(spark: SparkSession) -> list[DataFrame]:
    return [
        spark.createDataFrame([(1, "a1"), (2, "a2"), (2, "a3"), (None, "a0")], "k int, v string"),
        spark.createDataFrame([(1, "b1"), (3, "b3"), (None, "b0")], "k int, v string"),
        spark.createDataFrame([(1, 1.0), (3, 2.0), (4, None)], "id int, w double"),
    ]


def rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=repr)


FULL = [
    (1, "a1", "b1", 1.0, [0, 1, 2]),
    (2, "a2", None, None, [0]),
    (2, "a3", None, None, [0]),
    (3, None, "b3", 2.0, [1, 2]),
    (4, None, None, None, [2]),
    (None, "a0", None, None, [0]),
    (None, None, "b0", None, [1]),
]


def check_joins(spark: SparkSession) -> None:
    a, b, c = inputs(spark)
    joined = skewext.multi_full_join(
        a, b, (c, "id"), on="K", suffixes=["_a", "_b", None], indicator="has"
    )
    assert joined.columns == ["K", "v_a", "v_b", "w", "has"], joined.columns
    assert rows(joined) == sorted(FULL, key=repr), rows(joined)
    plain = [row[:4] for row in FULL]
    c = c.withColumnRenamed("id", "k")
    expected: list[tuple[Any, Callable[[tuple[Any, ...]], bool]]] = [
        ("left", lambda row: row[1] is not None),
        ("inner", lambda row: row[0] == 1),
        (["optional", "required", "optional"], lambda row: row[2] is not None),
    ]
    for how, is_in in expected:
        found = rows(skewext.multi_join(a, b, c, on="k", how=how))
        assert found == sorted(filter(is_in, plain), key=repr), (how, found)
    roles = ["excluded", "optional", "optional"]
    found = rows(skewext.multi_join(a, b, c, on=["k"], how=roles))
    assert found == sorted([(3, "b3", 2.0), (4, None, None), (None, "b0", None)], key=repr), found
    # Of one DataFrame several times, and as part of a query.
    twice = skewext.multi_full_join(a, a, on="k").groupBy("k").count()
    assert rows(twice) == sorted([(1, 1), (2, 4), (None, 2)], key=repr), rows(twice)


def fails(kind: type[Exception], sentence: str, body: Callable[[], object]) -> None:
    with pytest.raises(kind, match=re.escape(sentence)):
        body()
