"""What a server says that has no extension."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession
from with_extension import NOTEBOOK

import pyspark_skewext as skewext


@pytest.fixture(scope="module")
def a(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "a1"), (None, "a0")], "k int, v string")


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("multi_join", lambda a: skewext.multi_full_join(a, a, on="k")),
        (
            "asof_join",
            lambda a: skewext.asof_join(a, skewext.asof(a, time="v"), on="k", time="v"),
        ),
        ("latest", lambda a: skewext.latest(a, "k", by="v")),
        ("skew_join", lambda a: skewext.skew_join(a, a, "k", "full", "salted")),
        ("explain", skewext.explain),
        ("skew_report", lambda a: skewext.skew_report(a, "k")),
        ("query_report", lambda _: skewext.query_report()),
        ("write_bucketed", lambda a: skewext.write_bucketed(a, "t", "k", 2)),
    ],
)
def test_errors_name_what_the_server_needs(
    a: DataFrame, what: str, call: Callable[[DataFrame], Any]
) -> None:
    words = f"has no skewext, which {what} needs.*jar and spark.sql.extensions="
    with pytest.raises(PySparkRuntimeError, match=words):
        call(a)
    assert not skewext.is_enabled(a.sparkSession)


def test_doctor_gives_the_reason(spark: SparkSession) -> None:
    (part,) = skewext.doctor(spark).parts
    assert not part.active and "the Spark Connect server has no skewext" in str(part.reason)


def test_the_check_for_databricks(spark: SparkSession) -> None:
    found = runpy.run_path(str(NOTEBOOK), init_globals={"spark": spark})["found"]
    assert [what for what, result, _ in found if result != "yes"] == [
        "the extension is in the session",
        "the parts of the extension",
        "multi_full_join",
        "multi_join with roles",
        "multi_full_join is one operator",
        "Spark's own joins are rewritten",
        "skew_join",
        "skew_join by its technique",
        "skew_report",
        "query_report",
        "write_bucketed",
    ]
