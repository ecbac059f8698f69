"""What a server says that has no extension."""

from __future__ import annotations

import runpy

import pytest
from pyspark.errors import PySparkRuntimeError, PySparkValueError
from pyspark.sql import DataFrame, SparkSession
from with_extension import NOTEBOOK

import pyspark_skewext as skewext


@pytest.fixture(scope="module")
def a(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "a1"), (None, "a0")], "k int, v string")


def test_warnings(spark: SparkSession, a: DataFrame) -> None:
    assert not skewext.is_enabled(spark)
    with pytest.warns(UserWarning, match="chain of Spark's own joins"):
        skewext.multi_full_join(a, a, on="k")
    with pytest.warns(UserWarning, match="Spark's own join,"):
        skewext.skew_join(a, a, "k", "full", "salted")


def test_what_the_server_needs(a: DataFrame) -> None:
    with pytest.raises(PySparkRuntimeError, match="which explain needs"):
        skewext.explain(a)
    with pytest.raises(PySparkRuntimeError, match="which skew_report needs"):
        skewext.skew_report(a, "k")
    with pytest.raises(PySparkRuntimeError, match="which query_report needs"):
        skewext.query_report()


# That it warns is tested above; here what it says of the names is.
@pytest.mark.filterwarnings("ignore:The Spark Connect server has no skewext")
def test_names_that_clash(a: DataFrame) -> None:
    with pytest.raises(PySparkValueError, match="have two columns named 'v'"):
        skewext.multi_full_join(a, a, on="k", suffixes=["", ""])
    with pytest.raises(PySparkValueError, match="has the name of a column"):
        skewext.multi_full_join(a, a, on="k", indicator="V")


def test_the_check_for_databricks(spark: SparkSession) -> None:
    found = runpy.run_path(str(NOTEBOOK), init_globals={"spark": spark})["found"]
    assert [what for what, result, _ in found if result != "yes"] == [
        "the extension is in the session",
        "multi_full_join is one operator",
        "Spark's own joins are rewritten",
        "skew_join by its technique",
        "skew_report",
        "query_report",
    ]
