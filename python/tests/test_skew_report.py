"""The report about a key's skew: what it counts, and who may ask."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pictures import svg_of
from pyspark.errors import (
    AnalysisException,
    PySparkException,
    PySparkRuntimeError,
    PySparkTypeError,
    PySparkValueError,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from stock import setting

from pyspark_skewext import _jvm, skew_report
from pyspark_skewext.report import Bounds


@pytest.fixture(scope="module")
def visits(spark: SparkSession) -> DataFrame:
    """A third of 9,000 rows has key 7, a tenth none; the others have one of 3,000 keys."""
    return spark.range(0, 9000, 1, 3).selectExpr(
        "if(id % 3 = 0, 7, if(id % 10 = 1, null, id % 3000 + 10)) AS k", "id AS v"
    )


def shuffled(df: DataFrame, partitions: int, *on: str) -> list[int]:
    found = df.repartition(partitions, *on).groupBy(sf.spark_partition_id().alias("p")).count()
    rows = {row.p: row["count"] for row in found.collect()}
    return [rows.get(partition, 0) for partition in range(partitions)]


def test_counts_are_those_of_a_group_by(visits: DataFrame) -> None:
    report = skew_report(visits, "k", partitions=13)
    counted = {row.k: row["count"] for row in visits.groupBy("k").count().collect()}
    nulls = counted.pop(None)
    assert (report.df.rows, report.df.null_rows) == (9000, nulls)
    low, high = report.df.distinct_bounds
    assert low <= len(counted) <= high
    assert list(report.df.partition_rows) == shuffled(visits, 13, "k")
    # Fewer keys than the sketch holds: nothing is estimated.
    hot = report.hot_keys[0]
    assert (hot.key, hot.rows) == (7, Bounds(counted[7], counted[7]))
    assert math.isclose(hot.share, counted[7] / (9000 - nulls))
    assert report.slowest.partition == hot.partition
    assert report.slowest.size == max(report.df.partition_bytes)
    # 42 is Spark's seed, and a null leaves it as it is.
    assert report.df.partition_null_rows[42 % 13] == nulls


def test_a_small_sketch_still_gives_bounds(spark: SparkSession) -> None:
    # So many tasks are merged on executors before the driver gets them.
    df = spark.range(0, 40000, 1, 12).selectExpr(
        "if(id % 20 = 0, 'hot', if(id % 40 = 1, 'warm', cast(id as string))) AS k"
    )
    report = skew_report(df, "k", partitions=numpy.int64(50), min_share=numpy.float32(0.01))
    assert report.df.max_error > 0
    hot, warm = report.hot_keys[:2]
    assert (hot.key, warm.key) == ("hot", "warm")
    assert hot.rows.low <= 2000 <= hot.rows.high <= hot.rows.low + report.df.max_error
    assert warm.rows.low <= 1000 <= warm.rows.high <= warm.rows.low + report.df.max_error


def test_a_join(spark: SparkSession, visits: DataFrame) -> None:
    users = spark.range(0, 800, 1, 2).selectExpr("if(id < 50, 7, id * 2) AS user", "id AS u")
    report = skew_report(visits, "k", (users, "user"), partitions=13)
    hot = report.hot_keys[0]
    assert (hot.key, hot.rows.low, hot.other_rows) == (7, 3000, Bounds(50, 50))
    assert hot.output_rows == Bounds(150_000, 150_000)
    joined = visits.join(users, visits.k == users.user).count()
    assert report.output is not None
    assert abs(report.output.rows - joined) < joined / 50
    assert max(report.output.partition_rows) > 140_000
    assert report.other is not None
    assert report.other.rows == 800
    assert "which makes 150,000" in " ".join(report.advice)
    # Keys are compared in one type, as a join does.
    ints = users.selectExpr("cast(user AS int) AS k")
    texts = users.selectExpr("'0' || user AS k")
    with setting(spark, "spark.sql.ansi.enabled", False):
        for others in (ints, texts):
            report = skew_report(visits, "k", others, partitions=13)
            assert (report.hot_keys[0].key, report.hot_keys[0].other_rows) == (7, (50, 50))


KEYS: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-3, 3),
    "bigint": st.sampled_from([0, -1, 2**63 - 1, -(2**63)]),
    "string": st.sampled_from(["", "a", "a ", "\u00e9\u4e2d", "x" * 50]),
    "double": st.sampled_from([0.0, 1.5, math.inf, -math.inf]),
    "boolean": st.booleans(),
    "date": st.sampled_from([date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)]),
    "timestamp": st.sampled_from([datetime(2024, 1, 1, 1, 2, 3, 4), datetime(1970, 1, 1)]),
    "decimal(30,2)": st.sampled_from([Decimal("0.00"), Decimal("-1.10"), Decimal(10) ** 20]),
    "binary": st.sampled_from([bytearray(b""), bytearray(b"\x00"), bytearray(b"ab")]),
    "struct<x:int,y:string>": st.tuples(st.integers(0, 1), st.sampled_from([None, "a"])),
    "array<int>": st.lists(st.sampled_from([None, 1]), max_size=2),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=3))
    columns = [st.none() | KEYS[kind] for kind in types]
    return types, draw(st.lists(st.tuples(*columns), max_size=25))


def hashable(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(hashable, value))
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.slow
@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(table=tables())
def test_any_key(spark: SparkSession, table: tuple[list[str], list[tuple[Any, ...]]]) -> None:
    types, rows = table
    names = [f"k{n}" for n in range(len(types))]
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, types))
    # Compiling code takes longer than running it here.
    with setting(spark, "spark.sql.codegen.factoryMode", "NO_CODEGEN"):
        report = skew_report(spark.createDataFrame(rows, schema), names, partitions=3)
    whole = [row for row in rows if None not in row]
    assert (report.df.rows, report.df.null_rows) == (len(rows), len(rows) - len(whole))
    found = {
        hashable(key.key if len(names) > 1 else (key.key,)): key.rows for key in report.hot_keys
    }
    expected = Counter(map(hashable, whole))
    assert found == {key: Bounds(rows, rows) for key, rows in expected.items()}
    json.dumps(report.to_dict(), allow_nan=False)
    assert str(report)


def test_values_without_a_type_in_python_come_as_text(spark: SparkSession) -> None:
    df = spark.sql("select timestamp'0001-01-01' - interval 20 years as k")
    assert skew_report(df, "k").hot_keys[0].key.startswith("-0019-01-01")


def test_sizes_are_measured_on_request(visits: DataFrame) -> None:
    wide = visits.withColumn("text", sf.lit("x" * 1000))
    assert skew_report(wide, "k").df.row_bytes < 100
    assert 1000 < skew_report(wide, "k", sizes=True).df.row_bytes < 1100


def test_one_row_that_is_most_of_a_partition(spark: SparkSession) -> None:
    rows = spark.range(0, 5000, 1, 4).selectExpr(
        "if(id = 77, null, id % 1000) AS k", "if(id = 78, repeat('x', 30000000), 'y') AS v"
    )
    report = skew_report(rows, "k", partitions=13, sizes=True)
    row = report.df.largest_row
    assert row is not None and row.key == 78 and row.bytes > 30_000_000
    assert row.partition == report.slowest.partition
    assert (report.slowest.times or 0) > 100
    assert report.advice[0].startswith("One row of df with the key 78 has 29 MiB: partition ")
    assert "no split and no other number of partitions helps" in report.advice[0]
    # Its key has no more rows than others. Without sizes, nothing is known of it.
    assert skew_report(rows, "k", partitions=13).df.largest_row is None
    other = skew_report(spark.range(1000).toDF("k"), "k", rows, partitions=13, sizes=True)
    assert other.other is not None and other.other.largest_row == row
    assert other.df.largest_row is None
    assert "One row of other with the key 78" in other.advice[0]
    nobody = rows.selectExpr("if(k = 78, null, k) AS k", "v")
    unknown = skew_report(nobody, "k", partitions=13, sizes=True)
    assert unknown.df.largest_row is not None and unknown.df.largest_row.key is None
    assert unknown.advice[0].startswith("One row of df has 29 MiB")


def test_partitions_are_those_of_the_session(spark: SparkSession, visits: DataFrame) -> None:
    assert skew_report(visits, "k").shuffle_partitions == 3
    with setting(spark, "spark.sql.adaptive.coalescePartitions.initialPartitionNum", 21):
        assert skew_report(visits, "k").shuffle_partitions == 21


def test_what_adaptive_execution_would_split(spark: SparkSession, visits: DataFrame) -> None:
    limit = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
    with setting(spark, limit, 30_000):
        report = skew_report(visits, "k", partitions=13)
        assert report.df.skewed_partitions == [report.hot_keys[0].partition]
    assert skew_report(visits, "k", partitions=13).df.skewed_partitions == []


def test_nothing_at_all(spark: SparkSession, visits: DataFrame) -> None:
    report = skew_report(visits.where("v < 0"), "k", visits.limit(0))
    assert report.advice == ["There are no rows."]
    assert report.hot_keys == []
    assert "none has anything to do" in str(report)
    svg_of(report._repr_html_())
    all_null = skew_report(visits.where("k is null"), "k")
    assert all_null.df.null_share == 1.0
    assert "All partitions are small" in all_null.advice[0]


def progress_of(df: DataFrame) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []
    skew_report(df, "k", progress=lambda done, tasks: seen.append((done, tasks)))
    return seen


@pytest.mark.slow
@pytest.mark.classic("there is no progress")
def test_progress(spark: SparkSession) -> None:
    slow, other = (
        spark.range(0, tasks, 1, tasks).selectExpr(
            "if(java_method('java.lang.Thread', 'sleep', 400L) = 'no', -1, id) AS k"
        )
        for tasks in (4, 2)
    )
    with ThreadPoolExecutor(2) as threads:
        for seen, tasks in zip(threads.map(progress_of, (slow, other)), (4, 2)):
            assert seen[-1] == (tasks, tasks)
            assert seen == sorted(seen)

    def fails(done: int, tasks: int) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        skew_report(slow, "k", progress=fails)


@pytest.mark.parametrize(
    ("kind", "words", "arguments"),
    [
        (AnalysisException, "no column 'x'; its columns are 'k', 'v'; where", {"on": "x"}),
        (PySparkValueError, "must not be empty", {"on": []}),
        (PySparkTypeError, "name of a column", {"on": 3}),
        (PySparkTypeError, "not str", {"other": "t"}),
        (PySparkTypeError, "partitions must be a number, not str.", {"partitions": "8"}),
        (PySparkValueError, "partitions must be between 1", {"partitions": 0}),
        (PySparkValueError, "min_share must be between", {"min_share": 0.0}),
        (PySparkTypeError, "min_share must be a number", {"min_share": "1%"}),
        (PySparkTypeError, "sizes must be True or False", {"sizes": 1}),
        (PySparkTypeError, "progress must be a function", {"progress": True}),
    ],
)
def test_wrong_arguments(
    visits: DataFrame, kind: type[Exception], words: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(kind, match=re.escape(words)) as caught:
        skew_report(visits, **{"on": "k", **arguments})
    assert isinstance(caught.value, PySparkException)
    assert "\n" not in str(caught.value).strip()


def test_inputs_that_cannot_be(spark: SparkSession, visits: DataFrame) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value AS k")
    with pytest.raises(AnalysisException, match="streaming"):
        skew_report(stream, "k")
    maps = spark.sql("select map(1, 2) as k")
    with pytest.raises(AnalysisException, match="MAP<INT, INT>, which cannot be compared"):
        skew_report(maps, "k")
    with pytest.raises(AnalysisException, match="cannot all be compared"):
        skew_report(visits, "k", spark.sql("select array('a') as k"))


@pytest.mark.classic("is about the jar in this process")
def test_session_without_the_jar(visits: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jvm, "facade_of", lambda spark: None)
    with pytest.raises(PySparkRuntimeError, match="jar is not loaded"):
        skew_report(visits, "k")
