"""What only a server that has the extension does, and only there is asked for in this way."""

from __future__ import annotations

import os
import re
import runpy
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import pytest
from multisets import assert_same_rows
from pyspark.errors import (
    AnalysisException,
    PySparkRuntimeError,
    PySparkTypeError,
    PySparkValueError,
)
from pyspark.sql import DataFrame, Observation, SparkSession, types
from pyspark.sql import functions as sf
from stock import setting
from test_skew_join import TECHNIQUES

import pyspark_skewext as skewext
from pyspark_skewext._engine import connect

NOTEBOOK = Path(__file__).parents[3] / "examples" / "databricks_check.py"


@pytest.fixture(scope="module")
def sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Half the rows of the one have one key; each side has keys that the other lacks, and nulls."""
    left = spark.range(60).selectExpr("if(id % 2 = 0, 7, nullif(id, 9)) AS k", "id AS v")
    right = spark.range(5, 30, 2).selectExpr("nullif(id, 11) AS k", "id * 2 AS v")
    return left, right


@pytest.mark.parametrize("technique", TECHNIQUES, ids=str)
def test_the_technique_is_taken(
    sides: tuple[DataFrame, DataFrame], technique: str | skewext.Technique
) -> None:
    joined = skewext.skew_join(*sides, "k", "left", technique)
    said = skewext.explain(joined).joins[0].origin
    assert said.status == "asked for" and "skew_join by" in said.text, said


def test_columns_of_either_side_are_told_apart(sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = sides
    on = [left.k == right.k, left.v > 3]
    joined = skewext.skew_join(left, right, on, "inner", "broadcast_map")
    stock = left.join(right, on, "inner")
    assert_same_rows(joined.select(left.v, right.v), stock.select(left.v, right.v))


def test_aliases_and_hidden_keys_of_sides(sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = sides
    a, b = left.alias("a"), right.alias("b")
    on = sf.expr("a.k = b.k")
    joined = skewext.skew_join(a, b, on, "left", "adaptive").select("a.k", "b.v")
    assert_same_rows(joined, a.join(b, on, "left").select("a.k", "b.v"))
    unmatched = skewext.skew_join(left, right, "k", "left", "adaptive").where(right["k"].isNull())
    assert_same_rows(unmatched, left.join(right, "k", "left").where(right["k"].isNull()))


@pytest.mark.parametrize(
    ("kind", "words", "technique"),
    [
        (AnalysisException, "must be", skewext.IterativeBroadcast(chunks=5000)),
        (AnalysisException, "has 2 values", skewext.Salted(hot_keys=[(3, 4)])),
        (PySparkTypeError, "type object", skewext.Salted(hot_keys=[object()])),
    ],
)
def test_techniques_and_options_that_are_not(
    sides: tuple[DataFrame, DataFrame],
    kind: type[Exception],
    words: str,
    technique: skewext.Technique,
) -> None:
    with pytest.raises(kind, match=re.escape(words)):
        skewext.skew_join(*sides, "k", "full", technique)


@pytest.mark.parametrize(
    "key",
    [
        *(numpy.int64(-7), numpy.uint8(3), numpy.float32(0.5), numpy.bool_(True)),
        *("a,b; 'c' \\", " ", b"a\x00", Decimal("-1.50"), True, 2**40, 0.5),
        *(date(2024, 2, 29), datetime(2024, 2, 29, 1, 2, 3, 4), [1, 2]),
        *(timedelta(days=400, seconds=3723, microseconds=4), timedelta(microseconds=-1)),
    ],
    ids=repr,
)
def test_hot_keys_of_any_type(spark: SparkSession, key: Any) -> None:
    value = key.item() if isinstance(key, numpy.generic) else key
    left = spark.createDataFrame([(value, n) for n in range(3)], ["k", "a"])
    right = spark.createDataFrame([(value, 7)], ["k", "b"])
    salted = skewext.Salted(numpy.int64(2), hot_keys=[key])
    joined = skewext.skew_join(left, right, "k", "full", salted)
    assert "1 hot key: each has its rows divided" in str(skewext.explain(joined))
    assert_same_rows(joined, left.join(right, "k", "full"))


@pytest.mark.parametrize("zone", [None, timezone(timedelta(hours=-1))], ids=str)
def test_hot_keys_of_the_first_and_last_hours(spark: SparkSession, zone: timezone | None) -> None:
    """Python cannot convert such times to UTC."""
    times = [datetime(1, 1, 1, tzinfo=zone), datetime(9999, 12, 31, 23, 59, 59, tzinfo=zone)]
    for key in times:
        literal = f"TIMESTAMP'{key.isoformat(' ')}'"
        left = spark.range(90).selectExpr(f"if(id < 0, NULL, {literal}) AS k", "id AS a")
        right = spark.range(1).selectExpr(f"if(id < 0, NULL, {literal}) AS k", "id AS b")
        for technique in (skewext.Salted(16), skewext.Salted(16, hot_keys=[key])):
            joined = skewext.skew_join(left, right, "k", "full", technique)
            assert joined.where("a >= 0 AND b >= 0").count() == 90
            with setting(spark, "spark.sql.adaptive.coalescePartitions.enabled", False):
                assert joined.select(sf.spark_partition_id()).distinct().count() > 1


@pytest.mark.skipif(not hasattr(types, "TimeType"), reason="there is no TIME yet")
def test_hot_keys_of_type_time(spark: SparkSession) -> None:
    with setting(spark, "spark.sql.timeType.enabled", True):
        test_hot_keys_of_any_type(spark, time(1, 2, 3, 4))


def test_other_rules_for_a_backslash(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame]
) -> None:
    with setting(spark, "spark.sql.parser.escapedStringLiterals", True):
        test_hot_keys_of_any_type(spark, "a\\b 'c'")
        test_a_name_that_would_end_the_text_of_a_query(sides)


def test_partitions_whose_number_is_not_known(
    sides: tuple[DataFrame, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = type(sides[0].sparkSession.conf)
    get = conf.get
    joined = skewext.skew_join(*sides, "k", "full", "salted")
    # As on Databricks. Spark itself refuses the value.
    key = "spark.sql.shuffle.partitions"
    monkeypatch.setattr(
        conf, "get", lambda self, *given: "auto" if given[0] == key else get(self, *given)
    )
    again = skewext.skew_join(*sides, "k", "full", "salted")
    monkeypatch.undo()
    assert "1 hot key: each has its rows divided" in str(skewext.explain(again))
    assert str(skewext.explain(again)) == str(skewext.explain(joined))
    assert_same_rows(again, joined)


def test_joins_that_a_technique_cannot_do(sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = sides
    with pytest.raises(AnalysisException, match="cannot do this join"):
        skewext.skew_join(left, right, left.k > right.k, "inner", skewext.Salted(hot_keys=[1]))
    with pytest.raises(PySparkValueError, match="on is a condition"):
        skewext.skew_join(left, right, left.k == right.k, "full", "salted")
    # The join of a join, both by one technique.
    lower = skewext.skew_join(left, right, "k", "full", "broadcast_map")
    assert skewext.skew_join(lower, right.withColumnRenamed("v", "w"), "k").count() > 0


def test_columns_of_the_client(sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = (df.where("k IS NOT NULL") for df in sides)
    newest = [skewext.latest(left, "k", by=by) for by in ("v", left.v + 1, sf.expr("v").desc())]
    for each in newest[1:]:
        assert_same_rows(each, newest[0])
    joined = [
        skewext.asof_join(
            left,
            skewext.asof(right, time="v", tolerance=tolerance, ties=sf.length(sf.lit("a"))),
            on="k",
            time="v",
            suffixes=["", "_of"],
        )
        for tolerance in (3, sf.lit(3))
    ]
    assert_same_rows(*joined)


@pytest.mark.parametrize("name", ["first name", "`a.b`", "`a``b`", "s.v", "s.`v w`"])
def test_orders_by_any_column(sides: tuple[DataFrame, DataFrame], name: str) -> None:
    columns = ["v AS `first name`", "v AS `a.b`", "v AS `a``b`", "struct(v, v AS `v w`) AS s"]
    left = sides[0].selectExpr("k", *columns)
    for by in (sf.desc(name), sf.col(name).desc_nulls_first(), sf.col(name)):
        newest = skewext.latest(left, "k", by=by)
        assert_same_rows(
            newest.select("k", "s"), skewext.latest(left, "k", by="a.b").select("k", "s")
        )


def test_observations_of_inputs(sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = sides
    for join in (skewext.multi_full_join, skewext.skew_join):
        seen = Observation()
        join(left.observe(seen, sf.count(sf.lit(1)).alias("n")), right, on="k").where(
            "k > 3"
        ).collect()
        assert seen.get == {"n": 60}


def test_query_report(spark: SparkSession, sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = sides
    left.join(right, "k").collect()
    assert skewext.query_report().stages
    with pytest.raises(PySparkTypeError, match="Spark Connect"):
        skewext.query_report(left)
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(SparkSession.getActiveSession).result() is None
        assert threads.submit(skewext.query_report).result().stages


@pytest.mark.parametrize("remote", ["sc://localhost", "local[2]"])
def test_the_client_starts_no_server(remote: str) -> None:
    with pytest.raises(PySparkValueError, match="extensions are loaded by the server"):
        skewext.configure(SparkSession.builder.remote(remote))


def test_no_session(sides: tuple[DataFrame, DataFrame]) -> None:
    df: Any = sides[0]
    for call in (skewext.doctor, skewext.is_enabled, skewext.register):
        with pytest.raises(PySparkTypeError, match="Expected a SparkSession, not DataFrame"):
            call(df)


def test_a_name_that_would_end_the_text_of_a_query(sides: tuple[DataFrame, DataFrame]) -> None:
    odd = sides[0].withColumnRenamed("k", "{k}'\\")
    assert skewext.multi_full_join(odd, odd, on="{k}'\\").columns[0] == "{k}'\\"


def test_inputs_of_two_sessions(sides: tuple[DataFrame, DataFrame]) -> None:
    """Spark's own join refuses them, too."""
    other = SparkSession.builder.remote(os.environ["SKEWEXT_TEST_REMOTE"]).create().range(3)
    message = "belongs to another Spark Connect session than "
    with pytest.raises(PySparkValueError, match=f"Input 1 .* {message}input 0"):
        skewext.multi_full_join(sides[0], (other, "id"), on="k")
    with pytest.raises(PySparkValueError, match=f"right side {message}the left side"):
        skewext.skew_join(sides[0], other.withColumnRenamed("id", "k"), "k")


def test_no_progress(sides: tuple[DataFrame, DataFrame]) -> None:
    with pytest.raises(PySparkValueError, match="progress"):
        skewext.skew_report(sides[0], "k", progress=print)


def test_switched_off(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert skewext.is_enabled(spark)
    # Counting keys would be a job, of no use.
    monkeypatch.delattr(connect, "counted")
    with setting(spark, "spark.skewext.enabled", False):
        assert not skewext.is_enabled(spark)
        joined = skewext.skew_join(*sides, "k", "inner", "salted")
        assert_same_rows(joined, sides[0].join(sides[1], "k"))


def test_a_jar_of_another_version(
    sides: tuple[DataFrame, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "__version__", "9.9.9")
    assert skewext.is_enabled(sides[0].sparkSession)
    with pytest.raises(PySparkRuntimeError, match=r"pyspark_skewext has version 9\.9\.9"):
        skewext.multi_full_join(*sides, on="k")


def test_the_check_for_databricks(spark: SparkSession) -> None:
    found = runpy.run_path(str(NOTEBOOK), init_globals={"spark": spark})["found"]
    assert len(found) == 13
    assert [line for line in found if line[1] != "yes"] == []
